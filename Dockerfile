# docker build -t dpaudit . && docker run --rm --network none -v "$PWD:/work" dpaudit audit my.py:Gan --data t.csv
FROM python:3.12-slim
WORKDIR /src
COPY . .
# torch's CPU build: PyPI's for Linux brings gigabytes of CUDA
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir '.[torch]' \
    && rm -rf /src/*
RUN useradd --create-home auditor
USER auditor
WORKDIR /work
ENV OMP_NUM_THREADS=1
ENTRYPOINT ["dpaudit"]
CMD ["--help"]
