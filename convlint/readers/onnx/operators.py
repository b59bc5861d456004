"""What ONNX's operators do to the channels and sizes of feature maps.

From onnx/docs/Operators.md, opset 25. Whatever is not listed may do anything.
"""

from __future__ import annotations

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})
CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"})
WEIGHT_INPUT = {"Conv": 1, "ConvTranspose": 1, "ConvInteger": 1, "QLinearConv": 3}
NORMS = frozenset({"BatchNormalization", "InstanceNormalization"})
CONSTANTS = frozenset({"Constant", "ConstantOfShape"})
BODIES = frozenset({"If", "Loop", "Scan"})
RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})

# sizes, not maps: whoever widens a layer and exports again gets others
SIZES = frozenset({"Shape", "Size"})
# keep the sizes of their first input, whatever they read besides
_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli BitwiseNot Cast CastLike Ceil Celu Cos Cosh DequantizeLinear "
    "Dropout DynamicQuantizeLinear Elu Erf Exp Floor Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN "
    "LayerNormalization LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg Not "
    "QuantizeLinear RMSNormalization Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus "
    "Softsign Sqrt Swish Tan Tanh ThresholdedRelu"
)
SAME = frozenset(_SAME.split())
# take nothing but a type or a shape from the inputs behind these
DATA_INPUTS = {"CastLike": 1, "RandomNormalLike": 0, "RandomUniformLike": 0}
# broadcast all that they read to one shape
_ELEMENTWISE = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean "
    "Min Mod Mul Or PRelu Pow Sub Sum Where Xor"
)
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
# work on the axes behind batch and channels
POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"})
# may change any axis: the shapes around them tell which
ANY_AXIS = frozenset({"Resize", "Upsample", "Pad", "Expand"})
_REDUCED_BY = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
REDUCTIONS = frozenset(f"Reduce{kind}" for kind in _REDUCED_BY.split())
# all that they write has the shape of the first output; what others write besides is no map, but some numbers
ALIKE = frozenset({"Dropout", "MaxPool"})
