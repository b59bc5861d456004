"""Small specs that the tests of the command line check."""

HEAD = "version: 1\ntarget: [a100]\ndefaults: { N: 256, H: 56, W: 56, dtype: fp16, layout: NHWC }\nlayers:\n"
GOOD = HEAD + "  - { name: good, C: 64, K: 128, R: 3, S: 3, padding: 1, first: false }\n"
# CL102: channels that are no multiple of 8; CL006: padding as wide as the filter. Both are warnings.
ODD = "C: 62, K: 128, R: 3, S: 3, padding: 3, first: false"
BAD = HEAD + f"  - {{ name: odd, {ODD} }}\n"
