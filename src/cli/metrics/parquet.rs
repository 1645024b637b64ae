//! The table of what was measured as a Parquet file: a group of rows for each run.
//!
//! Owns the types of columns: names are UTF-8, counts unsigned 64-bit integers, values doubles that may be missing.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{Cell, Table};

/// What a column holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Count,
    Real,
}

/// The file.
pub fn parquet(table: &Table<'_>) -> Result<Vec<u8>> {
    let names = table.columns();
    let texts = 1 + table.axes.len();
    let kind = |place: usize| match place {
        place if place < texts => Kind::Text,
        place if place < names.len() - table.measured.len() => Kind::Count,
        _ => Kind::Real,
    };
    let column = |(place, name): (usize, &String)| {
        let (physical, logical, repetition) = match kind(place) {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
            Kind::Real => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        builder.build().map(Arc::new)
    };
    let columns = names.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("metrics").with_fields(columns).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("xrun ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for run in &table.plan.runs {
        let mut rows = Vec::new();
        table.rows_of(run, |row| rows.push(row));
        if rows.is_empty() {
            continue;
        }
        let mut group = writer.next_row_group()?;
        let mut place = 0;
        while let Some(mut column) = group.next_column()? {
            let cells = rows.iter().map(|row| &row[place]);
            match kind(place) {
                Kind::Text => {
                    let texts =
                        cells.map(|cell| if let Cell::Text(text) = cell { ByteArray::from(*text) } else { ByteArray::new() });
                    column.typed::<ByteArrayType>().write_batch(&texts.collect::<Vec<_>>(), None, None)?;
                }
                Kind::Count => {
                    // The bits of an unsigned number, as the logical type says.
                    let counts = cells.map(|cell| if let Cell::Count(count) = cell { *count as i64 } else { 0 });
                    column.typed::<Int64Type>().write_batch(&counts.collect::<Vec<_>>(), None, None)?;
                }
                Kind::Real => {
                    let values: Vec<Option<f64>> =
                        cells.map(|cell| if let Cell::Real(value) = cell { *value } else { None }).collect();
                    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
                    let values: Vec<f64> = values.into_iter().flatten().collect();
                    column.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
                }
            }
            column.close()?;
            place += 1;
        }
        group.close()?;
    }
    writer.into_inner()
}
