"""The k-quants of a Q4_K_M file, in numpy: Q4_K and Q6_K as llama.cpp's reference code makes them.

gguf's own `quantize` covers the simpler formats only.  A block holds 256 consecutive weights of a row.
"""
import gguf
import numpy as np

from gguf import GGMLQuantizationType as Type

BLOCK = 256


def nearest(x):
    return np.rint(x).astype(np.int32)


def divide(a, b):
    """a / b, and 0 where b is 0 (blocks of zeros)."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), np.float32), where=b != 0)


def half(x):
    """x as it comes back from float16."""
    return x.astype(np.float16).astype(np.float32)


def fit_scale_and_min(x, levels, steps=20):
    """For rows of x the (scale, min) of x ≈ scale * level - min with least weighted error, level in 0..levels.

    A least-squares fit is tried for several ways to round, from one step size below the range to one above.
    """
    weight = np.sqrt((x * x).mean(-1, keepdims=True)) + np.abs(x)
    total, total_x = weight.sum(-1), (weight * x).sum(-1)
    low, high = np.minimum(x.min(-1), 0), x.max(-1)
    span = high - low

    def error(scale, low, level):
        return (weight * (scale[:, None] * level + low[:, None] - x) ** 2).sum(-1)

    def rounded(numerator):
        return np.clip(nearest(divide(numerator, span)[:, None] * (x - low[:, None])), 0, levels)

    scale, best_low = span / levels, low.copy()
    best = error(scale, best_low, rounded(levels))
    for step in range(steps + 1):
        level = rounded(levels - 1 + 0.1 * step)
        wl = weight * level
        s, s2, sx = wl.sum(-1), (wl * level).sum(-1), (wl * x).sum(-1)
        det = total * s2 - s * s
        new_scale, new_low = divide(total * sx - total_x * s, det), divide(s2 * total_x - s * sx, det)
        positive = new_low > 0
        new_scale, new_low = np.where(positive, divide(sx, s2), new_scale), np.where(positive, 0, new_low)
        new_error = error(new_scale, new_low, level)
        better = (det > 0) & (new_error < best)
        scale, best_low = np.where(better, new_scale, scale), np.where(better, new_low, best_low)
        best = np.where(better, new_error, best)
    return scale, -best_low


def fit_scale(x, levels):
    """For rows of x the scale of x ≈ scale * level with least error weighted by x², level in -levels..levels-1."""
    extreme = np.take_along_axis(x, np.abs(x).argmax(-1)[:, None], -1)[:, 0]
    weight = x * x
    scale, best = np.zeros_like(extreme), np.zeros_like(extreme)
    for step in [0, *range(-9, 0), *range(1, 10)]:
        level = np.clip(nearest(divide(-(levels + 0.1 * step), extreme)[:, None] * x), -levels, levels - 1)
        sx, s2 = (weight * x * level).sum(-1), (weight * level * level).sum(-1)
        better = (s2 > 0) & (sx * sx > best * s2)
        scale = np.where(better, divide(sx, s2), scale)
        best = np.where(better, scale * sx, best)
    return scale


def q4_k(blocks):
    """Blocks (n, 256) to bytes (n, 144): d and dmin as float16, 8 scales and 8 mins of 6 bits, nibbles."""
    n = len(blocks)
    groups = blocks.reshape(n, 8, 32)
    scale, low = (v.reshape(n, 8) for v in fit_scale_and_min(blocks.reshape(-1, 32), 15))
    d, dmin = scale.max(-1, keepdims=True) / 63, low.max(-1, keepdims=True) / 63
    sc, mn = np.minimum(nearest(divide(scale, d)), 63), np.minimum(nearest(divide(low, dmin)), 63)
    step, offset = (half(d) * sc)[..., None], (half(dmin) * mn)[..., None]
    level = np.clip(nearest(divide(groups + offset, step)), 0, 15).astype(np.uint8)

    sc, mn = sc.astype(np.uint8), mn.astype(np.uint8)
    packed = np.concatenate([sc[:, :4] | (sc[:, 4:] >> 4) << 6, mn[:, :4] | (mn[:, 4:] >> 4) << 6,
                             (sc[:, 4:] & 15) | (mn[:, 4:] & 15) << 4], axis=-1)
    nibbles = (level[:, 0::2] | level[:, 1::2] << 4).reshape(n, 128)
    halves = np.concatenate([d, dmin], axis=-1).astype(np.float16).view(np.uint8)
    return np.concatenate([halves, packed, nibbles], axis=-1)


def q6_k(blocks):
    """Blocks (n, 256) to bytes (n, 210): low 4 bits, high 2 bits, 16 scales of 8 bits, d as float16."""
    n = len(blocks)
    scale = fit_scale(blocks.reshape(-1, 16), 32).reshape(n, 16)
    extreme = np.take_along_axis(scale, np.abs(scale).argmax(-1)[:, None], -1)
    d = extreme / -128
    sc = np.clip(nearest(divide(scale, d)), -128, 127)
    step = (half(d) * sc)[..., None]
    level = (np.clip(nearest(divide(blocks.reshape(n, 16, 16), step)), -32, 31) + 32).astype(np.uint8)

    quarter = level.reshape(n, 2, 4, 32)             # in each half: weights 0-31, 32-63, 64-95, 96-127
    low = (quarter & 15)[:, :, :2] | (quarter & 15)[:, :, 2:] << 4
    high = np.bitwise_or.reduce((quarter >> 4) << np.array([0, 2, 4, 6], np.uint8)[:, None], axis=2)
    return np.concatenate([low.reshape(n, 128), high.reshape(n, 64), sc.astype(np.int8).view(np.uint8),
                           d.astype(np.float16).view(np.uint8)], axis=-1)


def quantise(array, kind):
    """A float32 matrix as the bytes of a GGUF tensor, rows first."""
    pack = {Type.Q4_K: q4_k, Type.Q6_K: q6_k}.get(kind)
    if pack is None:
        return gguf.quants.quantize(array, kind)
    if array.shape[-1] % BLOCK:
        raise ValueError(f"rows of {array.shape[-1]} weights do not divide into blocks of {BLOCK}")
    return pack(array.astype(np.float32).reshape(-1, BLOCK)).reshape(len(array), -1)


def mix(name, layers, file_type):
    """The type that a tensor has in a file of a type, by llama.cpp's rules for a tied `smollm3`."""
    if name.endswith("_norm.weight"):
        return Type.F32
    if file_type != "Q4_K_M":
        return Type[file_type]
    if name == "token_embd.weight":
        return Type.Q6_K
    _, index, part = name.split(".")[:3]
    index = int(index)
    early, late = index < layers // 8, index >= 7 * layers // 8
    generous = early or late or (index - layers // 8) % 3 == 2
    return Type.Q6_K if generous and part in ("attn_v", "ffn_down") else Type.Q4_K
