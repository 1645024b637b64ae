//! The command line: one file for each verb.
//!
//! Owns arguments, exit codes and what goes to which stream: results to standard output, everything else to standard error. Ties the
//! runner to its workers. Deliberately holds no knowledge of the domain. Invariant: input that is refused leaves nothing behind.

#[cfg(feature = "train")]
mod bench;
mod cancel;
mod check;
mod choose;
mod completions;
mod diff;
mod explain;
mod export;
mod fault;
mod fmt;
mod gc;
mod job;
mod load;
mod lsp;
mod metrics;
mod new;
mod output;
mod plan;
mod progress;
mod replay;
mod report;
mod room;
mod run;
mod show;
mod status;
mod story;
mod tensorboard;
mod verify;
mod watch;
mod worker;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub use fault::{Fault, Outcome};

/// Controlled experiments on how transformers are built and grown.
#[derive(Parser)]
#[command(name = "xrun", version = VERSION, arg_required_else_help = true, disable_help_subcommand = true, after_help = AFTER)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    manner: Manner,
}

/// Which xrun this is, and what it was built to do.
const VERSION: &str = if cfg!(feature = "cuda") {
    concat!(env!("CARGO_PKG_VERSION"), " (trains on cpu and cuda)")
} else if cfg!(feature = "train") {
    concat!(env!("CARGO_PKG_VERSION"), " (trains on cpu)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (trains nothing: built without the feature `train`)")
};

const AFTER: &str = "\
Exit codes: 0 done; 1 a step failed or a claim check did; 2 the input is wrong; 130 interrupted, all progress kept.
Example: xrun plan experiments/001_quickstart.exp";

/// How xrun speaks.
#[derive(Args, Clone, Copy)]
struct Manner {
    /// Colours in diagnostics and progress [NO_COLOR turns them off]
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    /// Errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// More of what is known
    #[arg(long, short, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Manner {
    /// Whether to colour what goes to standard error.
    fn colors(self) -> bool {
        use std::io::IsTerminal;
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::io::stderr().is_terminal(),
        }
    }
}

#[derive(Subcommand)]
enum Verb {
    /// Write a first study that runs as it stands
    New(new::Arguments),
    /// Check .exp files and say all that is wrong with them
    Check(check::Arguments),
    /// Lay out .exp files in the usual way; comments stay, meaning too
    Fmt(fmt::Arguments),
    /// Say exactly what a study will train and cost; trains and writes nothing
    Plan(plan::Arguments),
    /// Train what is missing of a study
    Run(run::Arguments),
    /// Take the jobs of a study out of Slurm's queue; what they have done is kept
    Cancel(cancel::Arguments),
    /// Do the task of a Slurm job
    #[command(hide = true)]
    Job(job::Arguments),
    /// Tables, figures and verdicts from what has run, also half-way
    Report(report::Arguments),
    /// Write a trained model as a folder that transformers loads
    Export(export::Arguments),
    /// Time a training step, and keep the speed for the times in plans
    #[cfg(feature = "train")]
    Bench(bench::Arguments),
    /// All that was measured as one table, for other programs
    Metrics(metrics::Arguments),
    /// Show again what runs did, or the report that their events give
    Replay(replay::Arguments),
    /// What is different between two reports or two stores; exits with 1 if anything is
    Diff(diff::Arguments),
    /// What is done, under way, in the queue of Slurm, failed, missing
    Status(status::Arguments),
    /// Watch a study while it runs
    Watch(watch::Arguments),
    /// What is known of a node, or of the nodes of an arm
    Show(show::Arguments),
    /// Hash what the store holds, and do some of it again to compare
    Verify(verify::Arguments),
    /// Say, or remove, what no plan reaches
    Gc(gc::Arguments),
    /// Explain a diagnostic by its code, or a placement by its name
    Explain(explain::Arguments),
    /// Print what a shell needs to complete commands and options
    Completions(completions::Arguments),
    /// Serve an editor over standard input and output (LSP)
    Lsp,
    /// Say how to call a command; `xrun help language` prints the language reference
    Help(explain::HelpArguments),
}

/// Which study is meant, and where its results are.
#[derive(Args, Clone)]
struct Which {
    /// An .exp file, or a plan written by `xrun plan --format ron`
    file: PathBuf,
    /// The study, where the file has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// The folder of results [default: .xrun beside FILE]
    #[arg(long, env = "XRUN_STORE", value_name = "FOLDER", hide_env_values = true)]
    store: Option<PathBuf>,
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    // clap exits with 2 for arguments that it does not know, as for any other wrong input.
    let Arguments { verb, manner } = Arguments::parse();
    let result = match verb {
        Verb::New(arguments) => new::new(&arguments),
        Verb::Check(arguments) => check::check(&arguments, manner),
        Verb::Fmt(arguments) => fmt::fmt(&arguments, manner),
        Verb::Plan(arguments) => plan::plan(&arguments, manner),
        Verb::Run(arguments) => run::run(&arguments, manner),
        Verb::Cancel(arguments) => cancel::cancel(&arguments),
        Verb::Job(arguments) => job::job(&arguments, manner),
        Verb::Report(arguments) => report::report(&arguments, manner),
        Verb::Export(arguments) => export::export(&arguments, manner),
        #[cfg(feature = "train")]
        Verb::Bench(arguments) => bench::bench(&arguments, manner),
        Verb::Metrics(arguments) => metrics::metrics(&arguments, manner),
        Verb::Replay(arguments) => replay::replay(&arguments, manner),
        Verb::Diff(arguments) => diff::diff(&arguments),
        Verb::Explain(arguments) => explain::explain(&arguments),
        Verb::Help(arguments) => explain::help(&arguments),
        Verb::Completions(arguments) => completions::completions(&arguments),
        Verb::Lsp => lsp::lsp(),
        Verb::Status(arguments) => status::status(&arguments, manner),
        Verb::Watch(arguments) => watch::watch(&arguments, manner),
        Verb::Show(arguments) => show::show(&arguments, manner),
        Verb::Verify(arguments) => verify::verify(&arguments, manner),
        Verb::Gc(arguments) => gc::gc(&arguments, manner),
    };
    let outcome = result.unwrap_or_else(|fault| {
        output::complain(&fault.to_string());
        fault.outcome()
    });
    ExitCode::from(outcome)
}
