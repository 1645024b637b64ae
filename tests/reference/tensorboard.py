"""Reads what `xrun replay FILE --tensorboard FOLDER` wrote with TensorBoard's own reader and with tbparse, and compares it with the store.

    pip install tensorboard tbparse pandas
    xrun replay study.exp --tensorboard curves
    python tests/reference/tensorboard.py curves .xrun

Every value of every `metrics.jsonl` must stand in some run, at its step, as the nearest f32, and nothing else may.
"""

import json
import pathlib
import struct
import sys

from tbparse import SummaryReader
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def f32(value):
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def key(tag, step, value):
    return tag, step, "nan" if value != value else value


def main(curves, store):
    runs = sorted(path for path in pathlib.Path(curves).iterdir() if path.is_dir())
    shown = set()
    for run in runs:
        accumulator = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
        accumulator.Reload()
        count = 0
        for tag in accumulator.Tags()["scalars"]:
            for event in accumulator.Scalars(tag):
                shown.add(key(tag, event.step, event.value))
                count += 1
        frame = SummaryReader(str(run)).scalars
        assert len(frame) == count > 0, (run, len(frame), count)
        assert {key(*row) for row in zip(frame["tag"], frame["step"], frame["value"])} <= shown
    kept = set()
    for record in pathlib.Path(store).glob("nodes/*/record.ron"):
        metrics = record.parent / "metrics.jsonl"
        if 'kind: "phase"' in record.read_text() and metrics.exists():
            for line in metrics.read_text().splitlines():
                line = json.loads(line)
                kept |= {key(name, line["step"], f32(value)) for name, value in line["values"].items()}
    assert shown == kept, (sorted(map(str, shown - kept))[:5], sorted(map(str, kept - shown))[:5])
    print(f"{len(runs)} runs, {len(shown)} values: the same in TensorBoard, tbparse and the store")


if __name__ == "__main__":
    main(*sys.argv[1:])
