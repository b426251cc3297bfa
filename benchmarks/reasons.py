"""Reasons why lines exceed PyTorch's time or miss their limit: a column of the page.

The first pattern found in a line's 'FAMILY: NAME' applies. A reason is the result of a profile, not
a guess. A line without one is unexplained.
"""

from __future__ import annotations

import re

from .record import Row

REASONS: list[tuple[str, str]] = [
    (
        r"^calls: x\.(shape|grad)$",
        "one attribute: 339 instructions for `grad` where PyTorch has 716, 417 for `shape` where it has 1,113, and on both sides some 430 for calling "
        "the lambda that is timed",
    ),
    (
        r"^calls: x\.detach\(\)$",
        "1,378 instructions where PyTorch has 3,969, and on both sides some 430 for calling the lambda that is timed",
    ),
    (
        r"^calls: x\.tolist\(\)$",
        "a list and four Python floats, which both sides make and give up: 1,113 instructions where PyTorch has 2,568, and on both sides some 430 for "
        "calling the lambda that is timed",
    ),
    (
        r"^indexing: embedding_bag sum",
        "rows anywhere in a table that is larger than the second cache: 23 cycles a row of 256 bytes, the latency that prefetching leaves",
    ),
    (
        r"^training: MLP 784-2048-2048-10, batch 256",
        "60 % of the profile is MKL's kernel, the same as PyTorch's, 10 % its packing of both factors, 3 % the update; on AMX, which this machine lacks, "
        "the products are ours",
    ),
    (
        r"^training: GPT, 4 layers",
        "49 % of the profile is MKL's kernels, the same as PyTorch's, 8 % its packing, 9 % our own panels with theirs, the update and sums 1 % each; on tile "
        "units, which this machine has not, the products are ours",
    ),
    (
        r"^training: LSTM 64 to 128, 32 steps, batch 32",
        "on one thread, 2.3 ms are the steps forward and 3.6 ms the steps back with the gradient of the state's weight, whose products alone would take 3.5 ms "
        "at MKL's highest rate",
    ),
    (
        r"^training: ResNet-18, 32 x 32, batch 32",
        "faster than the floor, since Winograd's convolutions need fewer operations than it counts: a quarter of the profile is their products, another "
        "quarter takes numbers to those and back, the rest are normalizations, sums and updates at memory's speed",
    ),
    (
        r"^scan: cumprod of rows, 1024 x 1024, complex64",
        "each product waits for the one before: 8.8 cycles an element on two threads, of which two multiply-adds in a row are eight",
    ),
    (
        r"^linalg: (outer|kron)",
        "half to six tenths of the profile is the loop that writes 16 MiB: filling as many takes 0.6 to 1.1 ms from run to run, and non-temporal stores "
        "are no quicker",
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
    (
        r"^linalg: trace, 2048",
        "2,048 loads, each from a page of its own, are two thirds of the profile; 0.83 to 0.86 in other runs, by where in memory the matrices lie",
    ),
    (
        r"^linalg: cdist 500 x 500",
        "73 % of the profile is the multiply-adds of the kernel's own product of rows, in whole registers; 0.90 to 1.04 from run to run",
    ),
    (
        r"^reduction: sum, 100 K$",
        "80 % of the profile is reading 400 KB from the second cache on one thread, on both sides; 0.99 to 1.02 from run to run",
    ),
    (
        r"^pooling: adaptive_avg_pool2d to 1, 16",
        "80 % of the profile is reading 1.6 MB once, 49 numbers a sum; 0.98 to 1.01 from run to run",
    ),
    (
        r"^resampling: grid_sample bilinear(, forward and backward| 4x16x64x64)",
        "80 % of the profile is the kernels, loads of elements that lie anywhere above all; 0.83 to 0.96 in other runs, where both sides took "
        "half as long forward and backward",
    ),
    (
        r"^fft: (rfft2, 8 x 16|fft, 1000 rows of 1024, complex)",
        "MKL's transform of both dimensions at once is 190 of 221 µs (timed alone), and of the 1,000 rows all but the call: the same as PyTorch's; "
        "0.92 to 1.05 from run to run",
    ),
    (
        r"^elementwise: (log, (100 K|4 M)|cos, 1 M, float64)",
        "most of the profile is the loop, four registers at once: some 20 multiply-adds a register, of which the processor starts one or two a cycle",
    ),
    (
        r"^scan: cumsum, 4 M, int64",
        "a fifth of the profile is a first pass for the sums of the threads' parts, which a scan on one thread does not need; 0.84 to 1.12 from run to "
        "run, at memory's speed on both sides",
    ),
    (
        r"^fft: (fft, 1 M, complex|stft)",
        "most of the complex transform's profile is MKL's, the same call as PyTorch's; the short-time transform is MKL's rows of 512, the "
        "window's product and two copies",
    ),
    (
        r"^recurrent: nn.LSTM 256 to 512",
        "half of the profile and more is products in whole registers, near the floor themselves, a tenth the gates, 7 % waiting for the other thread at "
        "the end of each step; 0.92 to 1.14 from run to run",
    ),
    (
        r"^solving: eigh 256",
        "most of the profile is MKL's divide and conquer, the same as PyTorch's",
    ),
    (
        r"^creation: zeros, 100 K",
        "most of the profile is the stores of 400 KB; 0.60 to 1.06 from run to run",
    ),
    (
        r"^linalg: (linear, 1024 x 768 to 3072$|matmul 1024)",
        "most of the profile is MKL's kernel and its packing, the same as PyTorch's",
    ),
    (
        r"^indexing: index_select, 1 K of 1 K",
        "a third of the profile moves rows of 64 bytes, a quarter looks whether the indices are in range; 0.97 to 1.02 from run to run",
    ),
    (
        r"^normalization: normalize, 4096 x 768",
        "the division and the sums of squares are most of the profile: one operator after the other, as PyTorch does it",
    ),
    (
        r"^(joining: cat of (two, 4 M|columns)|copying: (clone, 100 K|copy_, 4 M)|fft: fftshift)",
        "three quarters of the profile and more is the C library's memmove",
    ),
    (
        r"^elementwise: (a \+ (column, 2048|b, 4 M, float64)|add\(out=\), 4 M|maximum, 4 M|x \* 2\.0, 4 M)",
        "two thirds to four fifths of the profile is the driver's, which asks for the next blocks and waits for memory, a twentieth to a sixth the arithmetic; "
        "either side is first from run to run",
    ),
    (
        r"^elementwise: (elu|gelu|tanh), 4 M$",
        "six tenths of the profile is the formula, a fifth the driver's, which uses non-temporal stores",
    ),
    (
        r"^elementwise: a / b, 4 M, float16",
        "half of the profile is the loop, conversions and division in registers, a third the driver's, which uses non-temporal stores",
    ),
    (
        r"^elementwise: a / column, 4096 x 64",
        "half of the profile is the loop, where divisions follow each other as fast as the processor makes them, a quarter repeats each number of the column for it",
    ),
    (
        r"^elementwise: a \* a, 100 K rows of 15",
        "73 % of the profile reads rows that lie apart, from memory, and puts them side by side",
    ),
    (
        r"^special: logit, 1 M",
        "three quarters of the profile is the formula, a division and a logarithm a number, which PyTorch has, too",
    ),
    (
        r"^reduction: amax of columns, 2048 x 2048, uint8",
        "77 % of the profile is the loop that reads 4 MiB once, 64 columns a register",
    ),
    (
        r"^reduction: sum of rows, forward and backward",
        "half of the profile writes the gradient, 16 MiB of a repeated number a row, a third sums",
    ),
    (
        r"^copying: pad reflect 8x16",
        "half of the profile is the kernel that writes rows with their edges, a quarter its copies",
    ),
    (
        r"^fft: fft of columns, 512",
        "half of the profile and more is MKL's transform, most of which gathers columns and puts them back, 28 % the copy in which it does so; PyTorch lets it "
        "read from one place and write to another, which we gave up after a process that did so was found with a damaged heap",
    ),
    (
        r"^fft: fftn, 64 x 64 x 64",
        "three quarters of the profile are MKL's, dimension by dimension; given all three at once it is quicker, which we gave up after a process that did so was "
        "found with a damaged heap",
    ),
    (
        r"^fft: irfft, 4096 rows of 62",
        "68 % of the profile is MKL's transform of a length of twice 31, the same as PyTorch's",
    ),
    (
        r"^copying: to float64, 4 M",
        "half of the profile is the driver's, which uses non-temporal stores, a third the conversion",
    ),
    (
        r"^reduction: nansum, 4 M",
        "77 % of the profile is the loop that reads and sums, at 0.78 of the floor",
    ),
    (
        r"^normalization: layer_norm, 4096 x 768, bfloat16",
        "three quarters of the profile are the two loops over rows that were made float32",
    ),
    (
        r"^calls: nn.Conv2d\(3, 8, 3\)",
        "a third of the profile puts the patches into a matrix for the product, in pieces of six numbers; the rest are the call and the product",
    ),
]


#: If a line reaches this part of its floor, the floor is the reason: the machine cannot do better,
#: and either side may be faster.
AT_THE_FLOOR = 0.85


def reason(row: Row) -> str:
    """Return a line's reason from the table, else from its floor, or ""."""
    full_name = f"{row.family}: {row.name}"
    found = next((text for pattern, text in REASONS if re.search(pattern, full_name)), "")
    if found or row.floor is None:
        return found
    least = row.floor / row.theirs
    if row.floor / row.ours >= AT_THE_FLOOR or least >= row.limit:
        return f"the machine's limit: at the floor itself the ratio would be {least:.2f}"
    return ""
