"""A real model server for tests: llama.cpp with a model of 135 million parameters, on loopback.

It serves until its standard input ends, so it never outlives the tests that started it.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Serve the model that the first line of stdin names; the address is the first line out."""
    settings = json.loads(sys.stdin.readline())
    # The library has no types.
    llama: Any = import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = settings["weights"]
    parameters.model_alias = {"local"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [settings["token"]]
    parameters.n_ctx = settings["context"]
    parameters.n_parallel = 1
    # Its threads wait for each other by spinning: on a busy machine fewer are faster.
    parameters.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)
    parameters.cpuparams_batch.n_threads = parameters.cpuparams.n_threads
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.ui = False
    parameters.offline = True
    server = llama.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    # Nothing here is worth an orderly end, and one may take seconds.
    os._exit(0)


if __name__ == "__main__":
    main()
