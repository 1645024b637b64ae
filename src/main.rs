//! The program `xrun`: arguments in, an exit code out.

fn main() -> std::process::ExitCode {
    xrun::cli::main()
}
