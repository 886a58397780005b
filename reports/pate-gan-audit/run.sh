#!/usr/bin/env bash
# The whole study again: bash run.sh DATA_FOLDER   (cervical_cancer.csv.gz, UCI, in it)
# Each line resumes where it was stopped; finished pieces are under results/, trials under --runs.
set -euo pipefail
data=$(cd "$1" && pwd)
cd "$(dirname "$0")"
runs=${RUNS:-$PWD/../../runs/pate-gan-audit}

python tables.py "$data"
python training.py "$data"
python average.py "$data" --games published --runs "$runs"
python worst.py --runs "$runs"
python average.py "$data" --games valid --runs "$runs"
python sequential.py "$data" --runs "$runs"
python remains.py "$data" --runs "$runs"
python pages.py
