#!/usr/bin/env python3
"""The metadata of a model file that are no result of training: its name, its chat template, how tokens are chosen.

    python metadata.py FILE.gguf

rewrites them in a file that was exported before; the weights and everything else stay as they are.
"""
import argparse
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
STRINGS = {
    "general.name": "Demo model",
    "general.description": "Tiny guide and demo model of the Goldcrest app, trained on generated text",
}
TEMPLATE = "tokenizer.chat_template"
# The likeliest token always: a model this small has no second-best answers worth hearing.
SAMPLING = {"general.sampling.temp": 0.0, "general.sampling.penalty_repeat": 1.0}

ALIGNMENT = 32
FLOAT32, STRING, ARRAY = 6, 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


class Header:
    """A GGUF's header, taken apart into byte strings."""

    def __init__(self, data):
        self.data, self.at = data, 4
        version, tensors, pairs = self.unpack("<IQQ")
        if data[:4] != b"GGUF" or version != 3:
            raise ValueError("not a GGUF file of version 3")
        self.tensors = tensors
        self.pairs = [self.pair() for _ in range(pairs)]
        begin = self.at
        for _ in range(tensors):
            self.string()
            (dimensions,) = self.unpack("<I")
            self.at += 8 * dimensions + 4 + 8
        self.tensor_infos = data[begin:self.at]
        self.weights = data[self.at + -self.at % ALIGNMENT:]

    def unpack(self, form):
        found = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def string(self):
        (length,) = self.unpack("<Q")
        self.at += length
        return self.data[self.at - length:self.at]

    def pair(self):
        key = self.string().decode()
        begin = self.at
        (kind,) = self.unpack("<I")
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            item, count = self.unpack("<IQ")
            for _ in range(count if item == STRING else 0):
                self.string()
            self.at += 0 if item == STRING else SIZES[item] * count
        else:
            self.at += SIZES[kind]
        return key, self.data[begin:self.at]


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def rewritten(data, template):
    """The bytes of a GGUF with these metadata."""
    header = Header(data)
    pairs = dict(header.pairs)
    if "general.alignment" in pairs:
        raise ValueError("the file has an alignment of its own")
    texts = {**STRINGS, TEMPLATE: template}
    pairs.update({key: struct.pack("<I", STRING) + string(text) for key, text in texts.items()})
    pairs.update({key: struct.pack("<If", FLOAT32, value) for key, value in SAMPLING.items()})
    out = b"GGUF" + struct.pack("<IQQ", 3, header.tensors, len(pairs))
    out += b"".join(string(key) + value for key, value in pairs.items()) + header.tensor_infos
    return out + bytes(-len(out) % ALIGNMENT) + header.weights


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file")
    ap.add_argument("--template", default=os.path.join(HERE, "template.jinja"))
    args = ap.parse_args()
    with open(args.template, encoding="utf-8") as f:
        template = f.read()
    with open(args.file, "rb") as f:
        data = rewritten(f.read(), template)
    with open(args.file + ".new", "wb") as f:
        f.write(data)
    os.replace(args.file + ".new", args.file)


if __name__ == "__main__":
    main()
