"""Why lines are above PyTorch's time, or miss their limit: the column of the page, in one place.

The first pattern that is found in a line's 'FAMILY: NAME' counts. A reason is the outcome of a profile, not a guess; a line without one has
none yet.
"""

from __future__ import annotations

import re

from .record import Row

REASONS: list[tuple[str, str]] = [
    (
        r"^calls: x\.(shape|grad)$",
        "one attribute: 341 instructions for `grad` where PyTorch has 716, 417 for `shape` where it has 1,109, and on both sides some 430 for calling "
        "the lambda that is timed",
    ),
    (
        r"^calls: x\.tolist\(\)$",
        "a list and four Python floats, which both sides make and give up: 1,154 instructions where PyTorch has 2,568, and on both sides some 430 for "
        "calling the lambda that is timed",
    ),
    (
        r"^indexing: embedding_bag sum",
        "rows anywhere in a table that is larger than the second cache: 23 cycles a row of 256 bytes, the latency that prefetching leaves",
    ),
    (
        r"^training: MLP 784-2048-2048-10, batch 256",
        "52 % is the tile units' products of parts, at four fifths of the units' own rate, by which the five large ones alone take 9.5 ms on two "
        "threads; taking factors apart is 17 %, adding up sums and writing results 11 %, the update 6 %, threads that wait 5 %, Python 3 %",
    ),
    (
        r"^training: GPT, 4 layers",
        "36 % is the tile units' products, 19 % taking factors apart for them (192 bytes written for 32 numbers), 9 % adding up their sums, "
        "7 % attention, threads that wait 9 %, Python 5 %; nothing else is above 3 %",
    ),
    (
        r"^training: LSTM 64 to 128, 32 steps, batch 32",
        "of 2.6 ms the steps forward, with the product of the input, are 33 %, where gates and products on tile units take turns; the steps "
        "back are 20 %, and the two weights' gradients, products over all steps at once that take the same gradient apart twice, 29 %",
    ),
    (
        r"^elementwise: a / b, 4 M, float16",
        "made float32 and back in passes of their own, in the first cache",
    ),
    (
        r"^scan: cumprod of rows, 1024 x 1024, complex64",
        "each product waits for the one before: 8.8 cycles an element on two threads, of which two multiply-adds in a row are eight",
    ),
    (
        r"^linalg: (outer|kron)",
        "writing 16 MiB: a bare loop of stores takes 311 µs, both sides 350 to 400 from run to run, either of them first",
    ),
    (
        r"^linalg: matmul (4 x 512 x 2048|1024, first transposed)",
        "nine tenths and more is MKL's kernel, the same as PyTorch's",
    ),
    (
        r"^linalg: matmul 512, every second column",
        "72 % is MKL's product, the same as PyTorch's; 14 % packs the columns for it",
    ),
    (
        r"^linalg: tensordot",
        "38 of 46 µs are the product, by MKL in parts along k; the rest are three views and the call",
    ),
    (
        r"^linalg: linear, 1024 x 768 to 3072, bfloat16",
        "92 % is oneDNN's kernel, the same as PyTorch's",
    ),
    (
        r"^convolution: 3x3, (step 2|4 groups)",
        "92 % is oneDNN's kernels, the same as PyTorch's, and its reorders",
    ),
    (
        r"^solving: lu_factor 512",
        "a tenth of the time turns the matrix into columns and back, where PyTorch hands columns out; the rest is MKL's factorization on both sides",
    ),
    (
        r"^solving: lstsq",
        "177 of 206 µs are MKL's on one thread (timed alone: QR 100, its product 21, gelsy of the triangle 56); PyTorch took 183 to 326 µs from one run to the next",
    ),
]


#: From this part of the floor on, that is the reason: less is not to be had on this machine, and either side may be first.
AT_THE_FLOOR = 0.85


def reason(row: Row) -> str:
    """What is known of a line, or nothing: from the table, else from its floor."""
    full_name = f"{row.family}: {row.name}"
    found = next((text for pattern, text in REASONS if re.search(pattern, full_name)), "")
    if found or row.floor is None:
        return found
    least = row.floor / row.theirs
    if row.floor / row.ours >= AT_THE_FLOOR or least >= row.limit:
        return f"the machine's limit: at the floor itself the ratio would be {least:.2f}"
    return ""
