"""A tiny vision model of llama.cpp with random weights, and llama.cpp's own server for it.

``python tiny_gguf.py FOLDER CONTEXT [vision]`` serves it on 127.0.0.1 until its input is closed,
and prints the address.  Tokens are bytes; an image has 16 of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, INNER, PATCH, SIDE = 32, 64, 16, 128
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"


class Weights:
    """Adds random tensors to a file."""

    def __init__(self, path: Path, architecture: str) -> None:
        import gguf

        self.file: Any = gguf.GGUFWriter(path, architecture)
        self._random = np.random.default_rng(5)

    def add(self, name: str, *shape: int) -> None:
        values = self._random.standard_normal(shape) * 0.3
        self.file.add_tensor(name, values.astype(np.float32))

    def add_ones(self, name: str) -> None:
        self.file.add_tensor(name, np.ones(WIDTH, np.float32))

    def write(self) -> None:
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()


def build_text(path: Path) -> None:
    """Write a Llama of one layer whose tokens are bytes."""
    weights = Weights(path, "llama")
    file = weights.file
    special = ["<unk>", "<s>", "</s>"]
    single = [f"<0x{number:02X}>" for number in range(256)]
    tokens = [*special, *single, "▁"]
    file.add_context_length(32768)
    file.add_embedding_length(WIDTH)
    file.add_block_count(1)
    file.add_feed_forward_length(INNER)
    file.add_head_count(2)
    file.add_head_count_kv(2)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // 2)
    file.add_vocab_size(len(tokens))
    file.add_tokenizer_model("llama")
    file.add_token_list(tokens)
    file.add_token_scores([0.0] * len(tokens))
    # Types: unknown, control twice, bytes, a normal token.
    file.add_token_types([2, 3, 3, *[6] * 256, 1])
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    file.add_chat_template(TEMPLATE)
    weights.add("token_embd.weight", len(tokens), WIDTH)
    weights.add("output.weight", len(tokens), WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weights.add(f"blk.0.{name}.weight", WIDTH, WIDTH)
    for name in ("ffn_gate", "ffn_up"):
        weights.add(f"blk.0.{name}.weight", INNER, WIDTH)
    weights.add("blk.0.ffn_down.weight", WIDTH, INNER)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        weights.add_ones(f"{name}.weight")
    weights.write()


def build_vision(path: Path) -> None:
    """Write a vision tower of one layer with Gemma 3's projector."""
    weights = Weights(path, "clip")
    file = weights.file
    file.add_bool("clip.has_vision_encoder", True)
    file.add_bool("clip.use_gelu", True)
    file.add_string("clip.projector_type", "gemma3")
    sizes = {
        "image_size": SIDE,
        "patch_size": PATCH,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "block_count": 1,
        "projection_dim": WIDTH,
        "attention.head_count": 2,
        "projector.scale_factor": 2,
    }
    for name, value in sizes.items():
        file.add_uint32(f"clip.vision.{name}", value)
    file.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    for name in ("image_mean", "image_std"):
        file.add_array(f"clip.vision.{name}", [0.5, 0.5, 0.5])
    weights.add("v.patch_embd.weight", WIDTH, 3, PATCH, PATCH)
    weights.add("v.patch_embd.bias", WIDTH)
    weights.add("v.position_embd.weight", (SIDE // PATCH) ** 2, WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        weights.add(f"v.blk.0.{name}.weight", WIDTH, WIDTH)
        weights.add(f"v.blk.0.{name}.bias", WIDTH)
    weights.add("v.blk.0.ffn_up.weight", INNER, WIDTH)
    weights.add("v.blk.0.ffn_up.bias", INNER)
    weights.add("v.blk.0.ffn_down.weight", WIDTH, INNER)
    weights.add("v.blk.0.ffn_down.bias", WIDTH)
    for name in ("v.blk.0.ln1", "v.blk.0.ln2", "v.post_ln"):
        weights.add_ones(f"{name}.weight")
        weights.add(f"{name}.bias", WIDTH)
    weights.add("mm.input_projection.weight", WIDTH, WIDTH)
    weights.add_ones("mm.soft_emb_norm.weight")
    weights.write()


def serve(folder: Path, context: int, vision: bool) -> None:
    """Serve the model until the input is closed; its address is put into ``address.txt``."""
    import xllamacpp

    build_text(folder / "text.gguf")
    options = xllamacpp.CommonParams()
    options.model.path = str(folder / "text.gguf")
    options.hostnames = ["127.0.0.1"]
    options.port = 0
    options.n_ctx = context
    options.n_parallel = 1
    options.cpuparams.n_threads = 1
    options.warmup = False
    if vision:
        build_vision(folder / "vision.gguf")
        options.mmproj.path = str(folder / "vision.gguf")
    server = xllamacpp.Server(options)
    written = folder / "address.part"
    written.write_text(server.listening_address)
    written.replace(folder / "address.txt")
    sys.stdin.read()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), "vision" in sys.argv[3:])
