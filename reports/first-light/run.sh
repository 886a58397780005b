#!/usr/bin/env bash
# Runs the study again: bash run.sh DATA_FOLDER   (about 8 minutes on 2 cores)
# DATA_FOLDER holds cervical_cancer.csv.gz and adult.csv.gz (UCI).
set -uo pipefail
data=$(cd "$1" && pwd)
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$data"/cervical_cancer.csv.gz "$data"/adult.csv.gz cervical.schema.json "$work"
python prepare_cervical.py "$data/cervical_cancer.csv.gz" "$work/cervical.csv"
here=$PWD
cd "$work"

study() {  # NAME, then the arguments of dpaudit audit; keeps the result and its reports
    local name=$1
    shift
    dpaudit audit "$@" --out "run/$name" -q
    echo "$name: exit code $?"
    mkdir -p "$here/$name"
    cp "run/$name"/result.json "run/$name"/report.html "run/$name"/report.md "$here/$name/"
}

published=(--data cervical.csv --schema cervical.schema.json --target row:397)
study pate-gan-breast-cancer pate-gan --data sample:breast-cancer --epsilon 1 --delta 1e-5
study pate-gan-cervical pate-gan "${published[@]}"
study pate-gan-cervical-bounds-from-data pate-gan -p bounds=data "${published[@]}"
study pate-gan-cervical-raw pate-gan --data cervical_cancer.csv.gz --shadow-models 200
study pate-gan-adult pate-gan --data adult.csv.gz --shadow-models 100 --rows 1000
