"""The drill's report: what broke, how long it took, and what a person saw and typed."""

from benchmarks.drill import FAULTS, Round, write_report


def test_each_round_is_a_row_and_what_is_not_exact_stands_out() -> None:
    mended = Round(
        broken=FAULTS[-1],
        moment=1.4,
        seconds=61.6,
        seen=["failed; raw/flights 2013-01-02 withheld", "published"],
        typed=[
            "backfill-assets backfill watch abc",
            "(the source lands 2013-01-02 again)",
            "backfill-assets backfill retry abc --yes",
        ],
        is_exact=True,
    )
    report = write_report([mended, Round(broken=FAULTS[0], moment=20)], seed=7)
    assert report.startswith("# Drill, seed 7\n\n3 days, 3 layers, chunks of a day;")
    assert report.endswith("|\n")
    head, rule, *rows = [line for line in report.splitlines() if line.startswith("|")]
    assert head == "| broken | after | right again after | seen | typed | contents |"
    assert rule == "|---|---|---|---|---|---|"
    assert rows == [
        "| a landed day | 1 s | 62 s | failed; raw/flights 2013-01-02 withheld<br>published "
        # What others do is no command.
        "| `backfill-assets backfill watch abc`<br>(the source lands 2013-01-02 again)<br>"
        "`backfill-assets backfill retry abc --yes` | exact |",
        "| the run | 20 s | 0 s |  |  | **not exact** |",
    ]
