#include "tc/lang/advice.h"

#include <algorithm>
#include <array>
#include <span>

namespace tc::lang {
namespace {

struct Advice {
  std::string_view word;
  std::string_view text;
};

constexpr std::string_view kChoice = "a choice is written 'condition ? a : b'";
constexpr std::string_view kLoop = "there are no loops: an index takes all its values, and 'where i in 0:N' bounds it";
constexpr std::string_view kLet = "a value gets a name in a clause: 'where t = value'";
constexpr std::string_view kModule = "names have no module in front: 'exp(x)', 'float16'";
constexpr std::string_view kProduct = "a product is a sum over an index: C(m,n) +=! A(m,k) * B(k,n)";
constexpr std::string_view kLargest =
    "the larger of two values is 'max(a, b)'; over an index it is 'y(m) max=! A(m,k)'";
constexpr std::string_view kLeast = "the smaller of two values is 'min(a, b)'; over an index it is 'y(m) min=! A(m,k)'";
constexpr std::string_view kMean = "a mean is a sum, and then a division: y(m) +=! A(m,k), and y(m) = y(m) / A.1";
constexpr std::string_view kComplex = "there are no complex numbers: the real and the imaginary part are two tensors";
constexpr std::string_view kPlace =
    "the place of the largest is two statements: m max=! x(i), and at min=! x(i) == m ? i : N where i in 0:N";
constexpr std::string_view kPlaceOfLeast =
    "the place of the least is two statements: m min=! x(i), and at min=! x(i) == m ? i : N where i in 0:N";
constexpr std::string_view kExtent = "the extent of the first dimension of 'A' is 'A.0'";

constexpr std::string_view kBool = "bools have no names: true is written '1 == 1', false '1 == 0'";
constexpr std::string_view kNone =
    "there is no 'None': every element has a value, and 'nan' is one that no other equals";

constexpr std::array kWords = {
    Advice{"and", "'and' is written '&&'"},
    Advice{"or", "'or' is written '||'"},
    Advice{"not", "'not' is written '!'"},
    Advice{"if", kChoice},
    Advice{"elif", kChoice},
    Advice{"else", kChoice},
    Advice{"for", kLoop},
    Advice{"while", kLoop},
    Advice{"let", kLet},
    Advice{"var", kLet},
    Advice{"const", kLet},
    Advice{"auto", kLet},
    Advice{"return", "there is no 'return': the results are the tensors behind '->'"},
    Advice{"true", kBool},
    Advice{"True", kBool},
    Advice{"false", kBool},
    Advice{"False", kBool},
    Advice{"None", kNone},
    Advice{"null", kNone},
    Advice{"nullptr", kNone},
    Advice{"INFINITY", "infinity is written 'inf'"},
    Advice{"infinity", "infinity is written 'inf'"},
    Advice{"NAN", "did you mean 'nan'?"},
    Advice{"NaN", "did you mean 'nan'?"},
    Advice{"M_PI", "did you mean 'pi'?"},
    Advice{"torch", kModule},
    Advice{"np", kModule},
    Advice{"numpy", kModule},
    Advice{"jnp", kModule},
    Advice{"jax", kModule},
    Advice{"tl", kModule},
    Advice{"math", kModule},
    Advice{"bf16", "did you mean 'bfloat16'?"},
    Advice{"__nv_bfloat16", "did you mean 'bfloat16'?"},
    Advice{"fp16", "did you mean 'float16'?"},
    Advice{"__half", "did you mean 'float16'?"},
    Advice{"f16", "did you mean 'float16'?"},
    Advice{"fp32", "did you mean 'float32'?"},
    Advice{"f32", "did you mean 'float32'?"},
    Advice{"tf32", "did you mean 'float32'? The intrinsic tf32(x) rounds one"},
    Advice{"fp64", "did you mean 'float64'?"},
    Advice{"f64", "did you mean 'float64'?"},
    Advice{"fp8", "the 8-bit floats are 'float8_e4m3' and 'float8_e5m2'"},
    Advice{"float8", "the 8-bit floats are 'float8_e4m3' and 'float8_e5m2'"},
    Advice{"float8_e4m3fn", "did you mean 'float8_e4m3'?"},
    Advice{"i8", "did you mean 'int8'?"},
    Advice{"i16", "did you mean 'int16'?"},
    Advice{"i32", "did you mean 'int32'?"},
    Advice{"i64", "did you mean 'int64'?"},
    Advice{"u8", "did you mean 'uint8'?"},
    Advice{"u16", "did you mean 'uint16'?"},
    Advice{"u32", "did you mean 'uint32'?"},
    Advice{"u64", "did you mean 'uint64'?"},
    Advice{"byte", "did you mean 'uint8'?"},
    Advice{"char", "did you mean 'int8'?"},
    Advice{"short", "did you mean 'int16'?"},
    Advice{"long", "did you mean 'int64'?"},
    Advice{"size_t", "did you mean 'uint64'?"},
    Advice{"boolean", "did you mean 'bool'?"},
    Advice{"unsigned", "did you mean 'uint32'?"},
    Advice{"e4m3", "did you mean 'float8_e4m3'?"},
    Advice{"e5m2", "did you mean 'float8_e5m2'?"},
    Advice{"complex", kComplex},
    Advice{"complex64", kComplex},
    Advice{"complex128", kComplex},
};

constexpr std::array kFunctions = {
    Advice{"sum", "a sum over an index is written 'y(m) +=! A(m,k)'"},
    Advice{"prod", "a product over an index is written 'y(m) *=! A(m,k)'"},
    Advice{"product", "a product over an index is written 'y(m) *=! A(m,k)'"},
    Advice{"mean", kMean},
    Advice{"average", kMean},
    Advice{"maximum", kLargest},
    Advice{"amax", kLargest},
    Advice{"minimum", kLeast},
    Advice{"amin", kLeast},
    Advice{"matmul", kProduct},
    Advice{"mm", kProduct},
    Advice{"dot", kProduct},
    Advice{"einsum", kProduct},
    Advice{"where", kChoice},
    Advice{"len", kExtent},
    Advice{"shape", kExtent},
    Advice{"size", kExtent},
    Advice{"range", kRangeAdvice},
    Advice{"argmax", kPlace},
    Advice{"argmin", kPlaceOfLeast},
    Advice{"softmax", "a softmax is four statements: examples/softmax.tc has them"},
    Advice{"gelu", "GELU is 0.5 * x * (1.0 + erf(x / sqrt(2.0)))"},
    Advice{"silu", "SiLU is x * sigmoid(x)"},
    Advice{"swish", "SiLU is x * sigmoid(x)"},
    Advice{"leaky_relu", kChoice},
    Advice{"print", "nothing is printed by a def: return what you want to see as a result"},
};

std::string_view find(std::span<const Advice> list, std::string_view word) {
  const auto found = std::ranges::find(list, word, &Advice::word);
  return found == list.end() ? std::string_view() : found->text;
}

}  // namespace

std::string_view advice_for_word(std::string_view word) { return find(kWords, word); }

std::string_view advice_for_function(std::string_view name) {
  const std::string_view advice = find(kFunctions, name);
  return advice.empty() ? advice_for_word(name) : advice;
}

std::string_view advice_for_intrinsic(std::string_view name, size_t arguments) {
  if (arguments != 1) return {};
  return name == "max" ? kLargest : name == "min" ? kLeast : std::string_view();
}

std::string_view advice_for_member(std::string_view object, std::string_view member) {
  if (member == "shape" || member == "size" || member == "ndim") return kExtent;
  if (member == "astype" || member == "to" || member == "type" || member == "float") return kCastAdvice;
  if (member == "T") return "a transposed tensor is read with its subscripts exchanged: A(k, m)";
  return advice_for_word(object);
}

}  // namespace tc::lang
