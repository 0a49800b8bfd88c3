"""How each command ends: with 2 where what is asked can't be, with 1 for what came of it."""

REVERSED = "--from 2013-01-02 --to 2013-01-01"
NOBODY = "no-such-run"
"""The id of nothing."""

EXITS: dict[str, dict[str, int]] = {
    "init": {"'No Name'": 2},
    "check": {"now": 2},
    "plan": {f"RAW {REVERSED}": 2, "RAW DAYS --max-parallel 0": 2, "RAW DAYS --yes --json": 0},
    "launch": {f"RAW {REVERSED} --yes": 2, "RAW DAYS": 2},
    "run": {f"RAW {REVERSED} --yes": 2, "RAW DAYS --engine flink": 2, "RAW DAYS": 2},
    "rehearse": {f"RAW {REVERSED}": 2, "RAW DAYS --max-changed-share 2": 2},
    "apply": {NOBODY: 2, "''": 2},
    "status": {
        "DAYS --failed": 2,
        "RAW --from 2013-01-01 --to 2013-01-20 --missing": 1,
        "RAW DAYS": 0,
    },
    "history": {"raw/nope": 2, "features/carrier_delays": 1, "raw/flights": 0},
    "rollback": {
        "raw/flights": 2,
        "raw/nope": 2,
        "raw/nope DAYS --to-version 1 --yes": 2,
        "raw/flights --to-version 1": 2,
        "raw/flights DAYS": 2,
        f"raw/flights DAYS --to-version 1 --before {NOBODY}": 2,
        f"raw/flights {REVERSED} --to-version 1": 2,
        f"raw/flights DAYS --before {NOBODY}": 2,
        "raw/flights DAYS --to-version 99 --yes": 2,
        "raw/flights DAYS --to-version 1 --reason WHY --yes": 2,
        "raw/flights DAYS --to-version 1": 2,  # nobody answers
        "raw/flights DAYS --to-version 1 --dry-run": 0,
        "serving/carrier_delays": 1,  # nothing is served yet
    },
    "accept": {
        "raw/nope DAYS --reason so": 2,
        f"raw/flights {REVERSED} --reason so": 2,
        "raw/flights DAYS --reason WHY": 2,
    },
    "adopt": {"raw/nope": 2, "features/carrier_delays": 1},
    "migrate": {"raw/nope": 2, "features/carrier_delays": 1, "raw/flights --dry-run": 0},
    "recover": {"--select raw/nope": 2, "--dry-run": 0},
    "protect": {
        "raw/nope --reason so": 2,
        "raw/flights": 2,
        "raw/flights --lift --reason so": 1,
        "--list": 0,
    },
    "backfill list": {"--limit 0": 2, "": 0},
    "backfill watch": {NOBODY: 2, "abc": 2},
    "backfill pause": {NOBODY: 2},
    "backfill resume": {NOBODY: 2},
    "backfill retry": {NOBODY: 2},
    "backfill cancel": {f"{NOBODY} --yes": 2},
    "proof certificate": {NOBODY: 2, f"{NOBODY} --verify": 2},
    "proof diff": {
        "raw/nope DAYS --before 1": 2,
        "raw/flights DAYS --before 9": 2,
        "features/carrier_delays DAYS --before 1": 1,
        "raw/flights DAYS --before 1": 0,
    },
    "proof reconcile": {"RAW DAYS --keys a": 2, f"RAW {REVERSED}": 2},
    "version list": {"raw/flights": 2, "carrier_delays": 0},
    "version promote": {
        "nope v2": 2,
        "carrier_delays v9": 2,
        "carrier_delays v2 --max-psi -1": 2,
        "carrier_delays v2 --canary 2013-01-02...2013-01-01": 2,
        "carrier_delays v2": 1,  # nothing is served yet
    },
    "version retire": {"nope v2": 2, "carrier_delays v9": 2, "carrier_delays v2 --yes": 1},
}
"""By command, arguments (see `hostile_launches`) and how it ends; none of them makes a run."""
