//! A column of a Parquet file as documents: a row is one.
//!
//! Deliberately knows no other column and no type but text. Invariant: a file is read page by page.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::basic::Type;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::corpus::CorpusError;
use super::documents::{Assembler, DocumentsError};
use super::files::Plain;
use crate::study::Documents;

/// Rows that are read at a time (an assumption: documents of common corpora have a few KiB).
const ROWS: usize = 64;

/// Shows the documents of a file.
pub(super) fn read(plain: Plain, rule: &Documents, into: &mut Assembler<'_, '_>) -> Result<(), CorpusError> {
    let path = plain.path().to_owned();
    let Documents::Field(field) = rule else {
        let reason = "it has columns: `document field \"text\"` says which holds the text".to_owned();
        return Err(DocumentsError::Unfit { path, reason }.into());
    };
    let file = plain.seekable()?;
    // The library trusts some lengths of a file, and a wrong one ends in a panic.
    let reader = guarded(&path, || SerializedFileReader::new(file))?;
    let column = column(&reader, field).map_err(|reason| DocumentsError::Unfit { path: path.clone(), reason })?;
    for group in 0..reader.num_row_groups() {
        let (group, typed) = guarded(&path, || {
            let group = reader.get_row_group(group)?;
            let typed = match group.get_column_reader(column)? {
                parquet::column::reader::ColumnReader::ByteArrayColumnReader(typed) => typed,
                _ => return Err(ParquetError::General("a column that is no text after all".to_owned())),
            };
            Ok((group, typed))
        })?;
        rows(&path, typed, group.metadata().num_rows(), into)?;
    }
    Ok(())
}

fn rows(
    path: &Path,
    mut reader: ColumnReaderImpl<ByteArrayType>,
    mut left: i64,
    into: &mut Assembler<'_, '_>,
) -> Result<(), CorpusError> {
    let (mut levels, mut values): (Vec<i16>, Vec<ByteArray>) = (Vec::new(), Vec::new());
    while left > 0 {
        levels.clear();
        values.clear();
        let (records, _, _) = guarded(path, || reader.read_records(ROWS, Some(&mut levels), None, &mut values))?;
        if records == 0 {
            let reason = format!("{left} rows are missing");
            return Err(DocumentsError::Damaged { path: path.into(), reason }.into());
        }
        left -= records as i64;
        // Rows without a value have no document.
        for value in &values {
            let text = std::str::from_utf8(value.data());
            let reason = || "a row is not UTF-8 text".to_owned();
            into.text(text.map_err(|_| DocumentsError::Damaged { path: path.into(), reason: reason() })?)?;
            into.end()?;
        }
    }
    Ok(())
}

/// The place of a column of text by its name.
fn column(reader: &SerializedFileReader<std::fs::File>, name: &str) -> Result<usize, String> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let named: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let Some(at) = named.iter().position(|known| known == name) else {
        return Err(format!("it has no column `{name}`; it has `{}`", named.join("`, `")));
    };
    let column = schema.column(at);
    if column.physical_type() != Type::BYTE_ARRAY || column.max_rep_level() > 0 {
        return Err(format!("its column `{name}` is no text"));
    }
    Ok(at)
}

fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DocumentsError> {
    let damaged = |reason: String| DocumentsError::Damaged { path: path.into(), reason };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| damaged(error.to_string())),
        Err(_) => Err(damaged("its lengths do not fit".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::super::documents::tests::{all, of_files};
    use super::*;

    /// A file of two row groups, of a number, a text and a text that may lack.
    fn file(compression: Compression) -> Vec<u8> {
        let schema = "message m { required int64 id; required binary text (UTF8); optional binary note (UTF8); }";
        let schema = Arc::new(parse_message_type(schema).expect("a schema"));
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).expect("a writer");
        for group in 0..2 {
            let mut group_writer = writer.next_row_group().expect("a group");
            let mut column = group_writer.next_column().expect("a column").expect("a column");
            let ids: Vec<i64> = (0..100).collect();
            column.typed::<parquet::data_type::Int64Type>().write_batch(&ids, None, None).expect("writes");
            column.close().expect("closes");
            let mut column = group_writer.next_column().expect("a column").expect("a column");
            let texts: Vec<ByteArray> = (0..100).map(|row| ByteArray::from(format!("{group} {row} ä").as_str())).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, None, None).expect("writes");
            column.close().expect("closes");
            let mut column = group_writer.next_column().expect("a column").expect("a column");
            let levels: Vec<i16> = (0..100).map(|row| i16::from(row % 10 == 0)).collect();
            column.typed::<ByteArrayType>().write_batch(&texts[..10], Some(&levels[..]), None).expect("writes");
            column.close().expect("closes");
            group_writer.close().expect("closes");
        }
        writer.into_inner().expect("the bytes")
    }

    fn read(name: &str, bytes: &[u8], rule: Documents) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), bytes).expect("writes");
        all(&of_files(name, rule), folder.path(), None)
    }

    #[test]
    fn a_row_is_a_document() {
        let wanted: Vec<String> = (0..2).flat_map(|group| (0..100).map(move |row| format!("{group} {row} ä"))).collect();
        let field = |name: &str| Documents::Field(name.into());
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            assert_eq!(read("a.parquet", &file(compression), field("text")).as_ref(), Ok(&wanted), "{compression:?}");
        }
        let packed = zstd::encode_all(&file(Compression::UNCOMPRESSED)[..], 1).expect("packs");
        assert_eq!(read("a.parquet.zst", &packed, field("text")).as_ref(), Ok(&wanted));
        assert_eq!(read("a.parquet", &file(Compression::SNAPPY), field("note")).map(|all| all.len()), Ok(20));
        let said = |rule| read("a.parquet", &file(Compression::SNAPPY), rule).expect_err("refused");
        assert!(said(Documents::Line).contains("`document field \"text\"` says which"));
        assert!(said(field("txt")).contains("it has no column `txt`; it has `id`, `text`, `note`"));
        assert!(said(field("id")).contains("its column `id` is no text"));
    }

    /// Cut anywhere, and changed anywhere: documents or a message, never a panic.
    #[test]
    fn damaged_files_have_a_message() {
        let whole = file(Compression::SNAPPY);
        let field = || Documents::Field("text".into());
        for at in (0..whole.len()).step_by(23) {
            assert!(read("a.parquet", &whole[..at], field()).is_err(), "cut at {at}");
            let mut changed = whole.clone();
            changed[at] ^= 0x5a;
            let _ = read("a.parquet", &changed, field());
        }
    }
}
