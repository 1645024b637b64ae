"""Reads what `xrun metrics FILE` wrote with pandas and Polars, and compares it with the store.

    pip install pandas polars pyarrow
    for format in parquet csv jsonl; do xrun metrics study.exp --format $format --out metrics.$format; done
    python tests/reference/metrics.py metrics .xrun

Every value of every `metrics.jsonl` of a phase must stand in some row, to the bit, and nothing else may.
"""

import json
import pathlib
import sys

import pandas
import polars


def key(name, step, value):
    value = float(value)
    return name, int(step), "nan" if value != value else value


def seen(frame, names):
    """Values of a frame, by the names of metrics; what is not there is no value."""
    found = set()
    for name in names:
        for step, value in zip(frame["step"], frame[name]):
            if value is not None and not (isinstance(value, float) and value != value):
                found.add(key(name, step, value))
    return found


def main(stem, store):
    kept = set()
    for record in pathlib.Path(store).glob("nodes/*/record.ron"):
        metrics = record.parent / "metrics.jsonl"
        if 'kind: "phase"' in record.read_text() and metrics.exists():
            for line in metrics.read_text().splitlines():
                line = json.loads(line)
                kept |= {key(name, line["step"], value) for name, value in line["values"].items()}
    names = {name for name, _, _ in kept}
    readers = {
        "pandas, parquet": lambda: pandas.read_parquet(f"{stem}.parquet"),
        "pandas, csv": lambda: pandas.read_csv(f"{stem}.csv", float_precision="round_trip"),
        "pandas, jsonl": lambda: pandas.read_json(f"{stem}.jsonl", lines=True, precise_float=True),
        "polars, parquet": lambda: polars.read_parquet(f"{stem}.parquet"),
        "polars, csv": lambda: polars.read_csv(f"{stem}.csv", infer_schema_length=None),
        "polars, jsonl": lambda: polars.read_ndjson(f"{stem}.jsonl", infer_schema_length=None),
    }
    for name, read in readers.items():
        frame = read()
        found = seen(frame, names)
        assert found == kept, (name, sorted(map(str, found - kept))[:5], sorted(map(str, kept - found))[:5])
        print(f"{name}: {len(frame)} rows, {len(found)} values, the same as in the store")


if __name__ == "__main__":
    main(*sys.argv[1:])
