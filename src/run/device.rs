//! Where tensors live, as a user names it.

use std::fmt;
use std::str::FromStr;

/// A device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// A CUDA device by its number.
    Cuda(usize),
}

impl Device {
    /// Whether this build of xrun can train there; if not, why.
    pub fn available(self) -> Result<(), String> {
        match self {
            _ if !cfg!(feature = "train") => {
                Err("this xrun was built without the feature `train`: it checks, plans and reports only".to_owned())
            }
            Device::Cuda(_) if !cfg!(feature = "cuda") => Err("this xrun was built without the feature `cuda`".to_owned()),
            Device::Cpu | Device::Cuda(_) => Ok(()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("no device `{text}`: it is `cpu`, `cuda` or `cuda:N`");
        match text.split_once(':') {
            None if text == "cpu" => Ok(Device::Cpu),
            None if text == "cuda" => Ok(Device::Cuda(0)),
            Some(("cuda", number)) => number.parse().map(Device::Cuda).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}
