"""llama.cpp's server on a free port of this machine, which it prints: llama.py MODEL CONTEXT"""
import sys
import time

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.port = sys.argv[1], int(sys.argv[2]), 1, 0
params.model_alias = {"tiny"}
params.api_keys = ["sk-live"]
params.warmup = False
params.sampling.temp = 0
server = xllamacpp.Server(params)
print(server.listening_address.rsplit(":", 1)[1], flush=True)
time.sleep(600)
