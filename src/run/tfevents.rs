//! TensorBoard's event files.
//!
//! Owns their framing (a TFRecord: length, checksum of the length, bytes, checksum of the bytes) and the four messages that a curve needs, by the
//! numbers of their fields in `tensorboard/compat/proto/{event,summary}.proto`. Deliberately reads none. Invariant: a value stands in the file as the nearest `f32`,
//! which is all that the format holds.

use std::io::{Result, Write};

/// An event file that is written from its beginning.
#[derive(Debug)]
pub struct EventFile<W: Write> {
    out: W,
}

impl<W: Write> EventFile<W> {
    /// Begins the file: its version, and that what an earlier file of the folder has from `step` on does not count.
    pub fn begin(out: W, at: f64, step: u64) -> Result<Self> {
        let mut file = Self { out };
        let mut version = event(at, None);
        bytes(&mut version, 3, b"brain.Event:2");
        file.record(&version)?;
        // `SessionLog.status = START`.
        let mut start = event(at, Some(step));
        bytes(&mut start, 7, &[0x08, 0x01]);
        file.record(&start)?;
        Ok(file)
    }
    /// Adds values by their names, at a step and a moment in seconds since 1970.
    pub fn add<'a>(&mut self, at: f64, step: u64, values: impl IntoIterator<Item = (&'a str, f64)>) -> Result<()> {
        let mut summary = Vec::new();
        for (name, value) in values {
            let mut one = Vec::new();
            bytes(&mut one, 1, name.as_bytes());
            // Field 2, four bytes.
            one.push(0x15);
            one.extend((value as f32).to_le_bytes());
            bytes(&mut summary, 1, &one);
        }
        let mut message = event(at, Some(step));
        bytes(&mut message, 5, &summary);
        self.record(&message)
    }
    /// What it was written into.
    pub fn into_inner(self) -> W {
        self.out
    }
    /// In one go, so that a reader who follows it sees whole records.
    fn record(&mut self, message: &[u8]) -> Result<()> {
        let length = (message.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(message.len() + 16);
        record.extend(length);
        record.extend(masked(&length).to_le_bytes());
        record.extend(message);
        record.extend(masked(message).to_le_bytes());
        self.out.write_all(&record)
    }
}

/// `Event` with its first fields: the moment, the step.
fn event(at: f64, step: Option<u64>) -> Vec<u8> {
    let mut message = vec![0x09];
    message.extend(at.to_le_bytes());
    if let Some(step) = step {
        message.push(0x10);
        varint(&mut message, step);
    }
    message
}

/// A field of bytes.
fn bytes(message: &mut Vec<u8>, field: u8, content: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, content.len() as u64);
    message.extend(content);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

/// CRC-32C, turned and shifted so that a checksum of data that holds checksums is none of them (TensorFlow, `core/lib/hash/crc32c.h`).
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::EventFile;

    /// Written by TensorBoard's own `tensorboard.summary.writer.record_writer.RecordWriter` and `event_pb2.Event`, 2.20.
    const THEIRS: &str = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c100000000000000095fbfe1809000000000000f83f10ac023a020801713b788a2c00000000000000f4aecc4509000000000000044010ac022a1e0a110a0a747261696e5f6c6f737315cdcccc3d0a090a026c72150000807f4567f0d3";

    #[test]
    fn bytes_are_those_of_tensorboard() {
        let mut file = EventFile::begin(Vec::new(), 1.5, 300).expect("memory");
        file.add(2.5, 300, [("train_loss", 0.1), ("lr", f64::INFINITY)]).expect("memory");
        let ours: String = file.into_inner().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(ours, THEIRS);
    }
}
