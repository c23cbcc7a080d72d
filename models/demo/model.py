"""SmolLM3's architecture in miniature, and how its weights lie in a GGUF.

RMSNorm, grouped-query attention, SwiGLU, tied embeddings, no biases, and rotary positions on all
layers except every fourth one (NoPE).  Training, export and evaluation share this file.
"""
from dataclasses import dataclass

import gguf
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

EMBED_SCALE = 24.0


@dataclass
class Config:
    vocab: int = 4096
    hidden: int = 256
    layers: int = 8
    heads: int = 4
    kv_heads: int = 1
    head_dim: int = 64
    ffn: int = 768
    rope_theta: float = 5_000_000.0
    nope_every: int = 4          # layer i has no rotary positions when (i + 1) % nope_every == 0
    norm_eps: float = 1e-6

    @property
    def qkv(self):
        """Rows of the query, key and value parts of the fused projection."""
        kv = self.kv_heads * self.head_dim
        return [self.heads * self.head_dim, kv, kv]


def rms_norm(x, weight, eps):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return (y * weight).to(x.dtype)


def rope_tables(cfg, length):
    """cos and sin of shape (length, head_dim), half-split layout as in Hugging Face models."""
    inv = 1.0 / cfg.rope_theta ** (torch.arange(0, cfg.head_dim, 2).double() / cfg.head_dim)
    angle = torch.outer(torch.arange(length).double(), inv)
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class Block(nn.Module):
    def __init__(self, cfg, index):
        super().__init__()
        self.cfg = cfg
        self.use_rope = (index + 1) % cfg.nope_every != 0
        self.attn_norm = nn.Parameter(torch.ones(cfg.hidden))
        self.qkv = nn.Linear(cfg.hidden, sum(cfg.qkv), bias=False)
        self.attn_out = nn.Linear(cfg.qkv[0], cfg.hidden, bias=False)
        self.ffn_norm = nn.Parameter(torch.ones(cfg.hidden))
        self.gate_up = nn.Linear(cfg.hidden, 2 * cfg.ffn, bias=False)
        self.down = nn.Linear(cfg.ffn, cfg.hidden, bias=False)

    def forward(self, x, cos, sin, mask, cache=None):
        """`cache` is a pair of tensors (batch, kv heads, past, head_dim) when tokens are generated."""
        cfg, (b, t, _) = self.cfg, x.shape
        q, k, v = self.qkv(rms_norm(x, self.attn_norm, cfg.norm_eps)).split(cfg.qkv, dim=-1)
        q = q.view(b, t, cfg.heads, cfg.head_dim).transpose(1, 2)
        k = k.view(b, t, cfg.kv_heads, cfg.head_dim).transpose(1, 2)
        v = v.view(b, t, cfg.kv_heads, cfg.head_dim).transpose(1, 2)
        if self.use_rope:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            cache[:] = k, v = [torch.cat(pair, dim=2) for pair in zip(cache, (k, v))]
        shared = (b, cfg.kv_heads, cfg.heads // cfg.kv_heads, k.shape[2], cfg.head_dim)
        k, v = (x.unsqueeze(2).expand(shared).flatten(1, 2) for x in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.attn_out(a.transpose(1, 2).reshape(b, t, -1))
        gate, up = self.gate_up(rms_norm(x, self.ffn_norm, cfg.norm_eps)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class DemoModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.hidden)
        self.blocks = nn.ModuleList(Block(cfg, i) for i in range(cfg.layers))
        # Large embeddings keep the identity of a token visible next to what the blocks add to the
        # residual stream (small ones drown in it, and copying suffers).  The embeddings are also the
        # output head, so the gain of the last norm starts small to make up for it.
        self.norm = nn.Parameter(torch.full((cfg.hidden,), 1 / EMBED_SCALE))
        nn.init.normal_(self.embed.weight, std=0.02 * EMBED_SCALE)
        for block in self.blocks:
            for lin in (block.qkv, block.gate_up):
                nn.init.normal_(lin.weight, std=cfg.hidden ** -0.5)
            for lin in (block.attn_out, block.down):
                nn.init.zeros_(lin.weight)
        self._rope = {}

    def rope(self, length, like):
        if length not in self._rope:
            self._rope[length] = [x.to(like.device) for x in rope_tables(self.cfg, length)]
        return [x.to(like.dtype) for x in self._rope[length]]

    def forward(self, ids, mask=None, pick=None):
        """Logits for all positions, or only for the flat positions in `pick` (saves the head's work)."""
        x = self.embed(ids)
        cos, sin = self.rope(ids.shape[1], x)
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        x = x.reshape(-1, self.cfg.hidden)
        if pick is not None:
            x = x[pick]
        return self.head(x)

    def head(self, x):
        return rms_norm(x, self.norm, self.cfg.norm_eps) @ self.embed.weight.t()

    @torch.no_grad()
    def generate(self, prompts, stop, limit):
        """Greedy answers to a batch of prompts (lists of ids), without the stop token.

        Returns (ids, stopped) for each.  Shorter prompts are padded at the left: rotary positions
        are relative, so only the mask has to know.
        """
        width, batch = max(map(len, prompts)), len(prompts)
        pad = torch.tensor([width - len(p) for p in prompts])
        ids = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
        cos, sin = self.rope(width + limit, self.norm)
        empty = torch.zeros(batch, self.cfg.kv_heads, 0, self.cfg.head_dim)
        caches = [[empty, empty] for _ in self.blocks]
        column = torch.arange(width + limit)
        seen = column[None, :] >= pad[:, None]
        # a padding position sees itself, since a softmax over nothing is not a number
        causal = (column[:, None] >= column[None, :]) & seen[:, None, :] | torch.eye(width + limit, dtype=torch.bool)
        out, open_ = [[] for _ in prompts], [True] * batch
        past = 0
        for _ in range(limit):
            now = past + ids.shape[1]
            x = self.embed(ids)
            for block, cache in zip(self.blocks, caches):
                x = block(x, cos[past:now], sin[past:now], causal[:, None, past:now, :now], cache)
            past = now
            ids = self.head(x[:, -1]).argmax(-1, keepdim=True)
            for i, token in enumerate(ids[:, 0].tolist()):
                if open_[i] and token == stop:
                    open_[i] = False
                elif open_[i]:
                    out[i].append(token)
            if not any(open_):
                break
        return [(tokens, not o) for tokens, o in zip(out, open_)]


# ----------------------------------------------------------------------------- GGUF layout
def interleave(weight, heads):
    """Half-split rotary layout (Hugging Face) to the interleaved one of GGUF files."""
    out, inp = weight.shape
    return weight.reshape(heads, 2, out // heads // 2, inp).swapaxes(1, 2).reshape(out, inp)


def deinterleave(weight, heads):
    out, inp = weight.shape
    return weight.reshape(heads, out // heads // 2, 2, inp).swapaxes(1, 2).reshape(out, inp)


def to_tensors(cfg, state):
    """The state of a `DemoModel` as GGUF tensors: name to float32 array."""
    state = {name: tensor.float().numpy() for name, tensor in state.items()}
    tensors = {"token_embd.weight": state["embed.weight"], "output_norm.weight": state["norm"]}
    for i in range(cfg.layers):
        part = {name: state[f"blocks.{i}.{name}"] for name in
                ("attn_norm", "qkv.weight", "attn_out.weight", "ffn_norm", "gate_up.weight", "down.weight")}
        q, k, v = np.split(part["qkv.weight"], np.cumsum(cfg.qkv)[:2])
        gate, up = np.split(part["gate_up.weight"], 2)
        block = {"attn_norm": part["attn_norm"], "attn_q": interleave(q, cfg.heads), "attn_k": interleave(k, cfg.kv_heads),
                 "attn_v": v, "attn_output": part["attn_out.weight"], "ffn_norm": part["ffn_norm"], "ffn_gate": gate,
                 "ffn_up": up, "ffn_down": part["down.weight"]}
        tensors.update({f"blk.{i}.{name}.weight": np.ascontiguousarray(array) for name, array in block.items()})
    return tensors


def from_gguf(path):
    """A `DemoModel` with the weights of a GGUF file of any quantisation, as float32."""
    reader = gguf.GGUFReader(path)
    key = lambda name: reader.fields[f"smollm3.{name}"].contents()
    w = {t.name: torch.tensor(gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)) for t in reader.tensors}
    cfg = Config(vocab=len(w["token_embd.weight"]), hidden=key("embedding_length"), layers=key("block_count"),
                 heads=key("attention.head_count"), kv_heads=key("attention.head_count_kv"),
                 head_dim=key("rope.dimension_count"), ffn=key("feed_forward_length"), rope_theta=key("rope.freq_base"),
                 norm_eps=key("attention.layer_norm_rms_epsilon"))
    state = {"embed.weight": w["token_embd.weight"], "norm": w["output_norm.weight"]}
    for i in range(cfg.layers):
        block = lambda name: w[f"blk.{i}.{name}.weight"]
        state.update({
            f"blocks.{i}.attn_norm": block("attn_norm"),
            f"blocks.{i}.qkv.weight": torch.cat([deinterleave(block("attn_q"), cfg.heads),
                                                 deinterleave(block("attn_k"), cfg.kv_heads), block("attn_v")]),
            f"blocks.{i}.attn_out.weight": block("attn_output"),
            f"blocks.{i}.ffn_norm": block("ffn_norm"),
            f"blocks.{i}.gate_up.weight": torch.cat([block("ffn_gate"), block("ffn_up")]),
            f"blocks.{i}.down.weight": block("ffn_down"),
        })
    model = DemoModel(cfg)
    model.load_state_dict(state)
    return model
