"""With which options and paths Spark reads landed files of any name. No Spark."""

from backfill_engine.engines.spark_engine import plan_reads


def test_one_reader_takes_all_but_names_of_a_pattern_and_a_colon() -> None:
    ordinary = ["s3a://zone/a.json", "s3a://zone/10:00.json", "s3a://zone/a[1].json"]
    odd = ["s3a://zone/10:00 [1].json", "s3a://zone/:*.json"]
    assert plan_reads("s3a://zone", [*ordinary, *odd]) == [
        ({}, [*ordinary[:2], r"s3a://zone/a\[1\].json"]),
        *(({"__globPaths__": "false"}, [uri]) for uri in odd),
    ]


def test_local_files_are_read_without_the_sums_beside_them() -> None:
    ((options, paths),) = plan_reads("file:/zone", ["file:/zone/a?.json"])
    assert paths == [r"file:/zone/a\?.json"]
    assert options["fs.file.impl"].endswith(".RawLocalFileSystem")
