"""Makes a model for llama.cpp that says what its prompt's last token asks for, always the same: model.py FILE

One layer whose weights are 0, so that each token passes through to the output, whose matrix has for each token the one that
follows. The chat template ends a prompt with <|say|>, or with <|call|> where the user's last message has the word CALL."""
import sys

import gguf
import numpy as np

SAY = ["Hello", "▁from", "▁llama.cpp", "▁", "<0xF0>", "<0x9F>", "<0x8E>", "<0x89>", "!"]
CALL = ["<tool_call>", "\n", '{"name":▁"list_directory",▁"arguments":▁{"dir_path":▁"."}}', "\n\n", "</tool_call>"]
# Instructions and tools are left out, so that prompts stay short: each byte is a token.
TEMPLATE = """{%- for message in messages if message.role != 'system' %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}{%- elif message.content %}{%- for part in message.content %}{{- part.text }}{%- endfor %}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if tools %}{%- set mark = '<tool_call>' %}{%- endif %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{{- '<|call|>' if messages[-1].role == 'user' and 'CALL' in (messages[-1].content | string) else '<|say|>' }}{%- endif %}"""

special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|say|>", "<|call|>"]
known = [f"<0x{n:02X}>" for n in range(256)]
words = [it for it in SAY + CALL if it not in known]
tokens = special + known + words
kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * (len(special) - 1)
kinds += [gguf.TokenType.BYTE] * len(known) + [gguf.TokenType.NORMAL] * len(words)
at = {it: n for n, it in enumerate(tokens)}
width = 64 * -(-len(tokens) // 64)

out = gguf.GGUFWriter(sys.argv[1], "llama")
out.add_context_length(65536)
out.add_embedding_length(width)
out.add_block_count(1)
out.add_feed_forward_length(64)
out.add_head_count(width // 64)
out.add_head_count_kv(1)
out.add_rope_dimension_count(64)
out.add_layer_norm_rms_eps(1e-5)
out.add_file_type(gguf.LlamaFileType.ALL_F32)
out.add_tokenizer_model("llama")
out.add_token_list(tokens)
out.add_token_scores([-1000.0] * len(tokens))
out.add_token_types(kinds)
out.add_bos_token_id(at["<s>"])
out.add_eos_token_id(at["</s>"])
out.add_unk_token_id(at["<unk>"])
out.add_add_bos_token(True)
out.add_add_space_prefix(False)
out.add_chat_template(TEMPLATE)

follows = np.zeros((len(tokens), width), np.float32)
for begin, chain in (("<|say|>", SAY), ("<|call|>", CALL)):
    chain = [begin, *chain, "</s>"]
    for now, then in zip(chain, chain[1:]):
        follows[at[then], at[now]] = 4
zeros = lambda *shape: np.zeros(shape, np.float32)
out.add_tensor("token_embd.weight", np.eye(len(tokens), width, dtype=np.float32))
out.add_tensor("output.weight", follows)
for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
    out.add_tensor(name + ".weight", np.ones(width, np.float32))
for name, rows, columns in (("attn_q", width, width), ("attn_k", 64, width), ("attn_v", 64, width), ("attn_output", width, width),
                            ("ffn_gate", 64, width), ("ffn_up", 64, width), ("ffn_down", width, 64)):
    out.add_tensor(f"blk.0.{name}.weight", zeros(rows, columns))
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
