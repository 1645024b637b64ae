//! A model of others without meaning, of any size, and what a process takes that reads it. Linux only.

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A Llama in BF16 with heads of 64 channels, all of them with keys and values of their own, and a head that is not the embedding.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub layers: usize,
    pub width: usize,
    pub hidden: usize,
    pub vocabulary: usize,
}

impl Shape {
    /// Parameters of its layers.
    pub fn layered(self) -> usize {
        self.layers * (4 * self.width * self.width + 3 * self.width * self.hidden + 2 * self.width)
    }

    /// Writes it: small weights, norms of one.
    pub fn write(self, folder: &Path) {
        let Self { layers, width, hidden, vocabulary } = self;
        std::fs::create_dir(folder).expect("a folder");
        let heads = width / 64;
        let config = serde_json::json!({
            "model_type": "llama", "hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": heads, "vocab_size": vocabulary, "rms_norm_eps": 1e-6,
            "tie_word_embeddings": false
        });
        std::fs::write(folder.join("config.json"), config.to_string()).expect("writes");
        let mut all = vec![
            ("model.embed_tokens.weight".to_owned(), vec![vocabulary, width]),
            ("lm_head.weight".to_owned(), vec![vocabulary, width]),
            ("model.norm.weight".to_owned(), vec![width]),
        ];
        for layer in 0..layers {
            let mut add = |name: &str, shape: &[usize]| all.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
            ["q", "k", "v", "o"].iter().for_each(|name| add(&format!("self_attn.{name}_proj"), &[width, width]));
            ["gate", "up"].iter().for_each(|name| add(&format!("mlp.{name}_proj"), &[hidden, width]));
            add("mlp.down_proj", &[width, hidden]);
            ["input", "post_attention"].iter().for_each(|name| add(&format!("{name}_layernorm"), &[width]));
        }
        let (mut header, mut at) = (serde_json::Map::new(), 0);
        for (name, shape) in &all {
            let end = at + 2 * shape.iter().product::<usize>();
            header.insert(name.clone(), serde_json::json!({ "dtype": "BF16", "shape": shape, "data_offsets": [at, end] }));
            at = end;
        }
        let mut header = serde_json::Value::Object(header).to_string();
        header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
        let mut file = BufWriter::new(std::fs::File::create(folder.join("model.safetensors")).expect("a file"));
        file.write_all(&(header.len() as u64).to_le_bytes()).and_then(|()| file.write_all(header.as_bytes())).expect("writes");
        // The upper half of a float is its BF16.
        let half = |value: f32| [value.to_bits().to_le_bytes()[2], value.to_bits().to_le_bytes()[3]];
        let mut state = 1u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            half(((state >> 16) as f32 / 65_536.0 - 0.5) / 8.0)
        };
        // Of a length that no row has, so that no two rows are the same.
        let drawn: Vec<u8> = (0..65_521).flat_map(|_| draw()).collect();
        let ones: Vec<u8> = (0..65_521).flat_map(|_| half(1.0)).collect();
        for (_, shape) in &all {
            let (mut left, from) = (2 * shape.iter().product::<usize>(), if shape.len() == 1 { &ones } else { &drawn });
            while left > 0 {
                let some = left.min(from.len());
                file.write_all(&from[..some]).expect("writes");
                left -= some;
            }
        }
        file.flush().expect("writes");
    }
}

/// The largest resident size in bytes that a command had as long as it was looked at; it must end well.
pub fn peak(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("xrun runs");
    let (status, mut most) = (format!("/proc/{}/status", child.id()), 0);
    while child.try_wait().expect("it is there").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        most = found.map_or(most, |kibibytes: u64| kibibytes << 10);
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
    assert!(child.wait().expect("it is there").success(), "{command:?}: {said}");
    most
}
