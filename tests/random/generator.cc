#include "tests/random/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "tests/random/random.h"

namespace tc::testing {
namespace {

/// An extent: as written, and its value.
struct Extent {
  std::string text;
  int64_t value;
};

struct Tensor {
  std::string name;
  ScalarType type;
  std::vector<Extent> shape;
};

/// An index of the statement being made. A plain one runs over an extent that inference finds, because it stands alone
/// in a subscript of that extent; the others have a where clause.
struct Index {
  std::string name;
  int64_t begin;
  int64_t end;
  std::string end_text;
  bool plain;
  bool anchored = false;  ///< a plain one that has occurred in a subscript of its extent
};

enum class Kind { kFloat, kInteger, kBool };

constexpr ScalarType kFloatTypes[] = {ScalarType::kFloat32, ScalarType::kFloat64, ScalarType::kFloat16,
                                      ScalarType::kBFloat16};
constexpr ScalarType kIntegerTypes[] = {ScalarType::kInt32,  ScalarType::kInt8,  ScalarType::kInt16,
                                        ScalarType::kInt64,  ScalarType::kUInt8, ScalarType::kUInt16,
                                        ScalarType::kUInt32, ScalarType::kUInt64};

Kind kind_of(ScalarType type) {
  if (is_float(type)) return Kind::kFloat;
  return type == ScalarType::kBool ? Kind::kBool : Kind::kInteger;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) { program_.seed = seed; }

  RandomProgram run() {
    make_sizes();
    make_parameters();
    const int64_t statements = random_.range(1, 5);
    for (int64_t n = 0; n < statements; ++n) make_statement();
    return std::move(program_);
  }

 private:
  // ---- sizes and parameters

  void make_sizes() {
    static constexpr int64_t kValues[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20, 33};
    const int64_t count = random_.range(1, 3);
    for (int64_t n = 0; n < count; ++n) {
      const std::string name = fmt::format("N{}", n);
      const int64_t value = random_.chance(4) ? 0 : kValues[random_.below(std::size(kValues))];
      program_.sizes[name] = value;
      extents_.push_back({name, value});
    }
    for (int64_t n = random_.range(0, 1); n > 0; --n) {
      const int64_t value = random_.range(1, 9);
      extents_.push_back({fmt::format("{}", value), value});
    }
  }

  // An extent to declare with: now and then one that is computed from a size.
  Extent declared_extent() {
    const Extent base = extents_[random_.below(extents_.size())];
    if (random_.chance(85) || base.value == 0) return base;
    if (random_.chance(50)) return {fmt::format("{} + 2", base.text), base.value + 2};
    return {fmt::format("2 * {}", base.text), base.value * 2};
  }

  std::vector<Extent> declared_shape(int64_t rank) {
    std::vector<Extent> shape;
    for (int64_t d = 0; d < rank; ++d) shape.push_back(rank >= 3 ? small_extent() : declared_extent());
    return shape;
  }

  Extent small_extent() {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Extent extent = declared_extent();
      if (extent.value <= 9) return extent;
    }
    return {"3", 3};
  }

  // A cast; of a constant that does not fit, the language refuses it.
  static std::string cast(ScalarType type, const std::string& text) {
    const bool is_constant = std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c); });
    return fmt::format("{}({})", name_of(type), is_constant && is_integer(type) ? "7" : text);
  }

  static std::string shape_of(const std::vector<Extent>& shape) {
    std::vector<std::string> texts;
    for (const Extent& extent : shape) texts.push_back(extent.text);
    return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, ", "));
  }

  void add_parameter(const Tensor& tensor) {
    program_.parameters.push_back(fmt::format("{}{} {}", name_of(tensor.type), shape_of(tensor.shape), tensor.name));
    readable_.push_back(tensor);
  }

  void make_parameters() {
    // Every size is the extent of some parameter, so that a call gives it.
    for (const auto& [name, value] : program_.sizes) {
      add_parameter({fmt::format("A{}", inputs_++), random_type(), {{name, value}}});
    }
    for (int64_t n = random_.range(1, 3); n > 0; --n) {
      add_parameter({fmt::format("A{}", inputs_++), random_type(), declared_shape(random_.range(1, 3))});
    }
    for (int64_t n = random_.range(0, 2); n > 0; --n) {
      const ScalarType type = random_.chance(70) ? random_float() : random_integer();
      const Tensor scalar{fmt::format("s{}", n), type, {}};
      program_.parameters.push_back(fmt::format("{} {}", name_of(type), scalar.name));
      scalars_.push_back(scalar);
    }
  }

  ScalarType random_float() { return random_.chance(60) ? ScalarType::kFloat32 : kFloatTypes[random_.below(4)]; }
  ScalarType random_integer() { return random_.chance(40) ? ScalarType::kInt32 : kIntegerTypes[random_.below(8)]; }
  ScalarType random_type() {
    if (random_.chance(62)) return random_float();
    return random_.chance(90) ? random_integer() : ScalarType::kBool;
  }

  // ---- statements

  void make_statement() {
    indices_.clear();
    clauses_.clear();
    lets_.clear();
    const uint64_t choice = random_.below(100);
    if (choice < 36) {
      make_pointwise();
    } else if (choice < 72) {
      make_reduction();
    } else if (choice < 80) {
      make_scatter();
    } else if (choice < 90) {
      make_update_in_place();
    } else {
      make_padded();
    }
  }

  std::string new_tensor_name() { return fmt::format("T{}", temporaries_++); }

  int add_index(bool plain) {
    const std::string name = fmt::format("i{}", indices_.size());
    const Extent extent = extents_[random_.below(extents_.size())];
    if (plain || extent.value == 0) {
      indices_.push_back({name, 0, extent.value, extent.text, true});
    } else {
      const int64_t begin = random_.chance(60) ? 0 : random_.range(0, extent.value - 1);
      // Up to the extent, or to a constant below it.
      const int64_t end = random_.chance(60) ? extent.value : random_.range(begin + 1, extent.value);
      const std::string end_text = end == extent.value ? extent.text : fmt::format("{}", end);
      indices_.push_back({name, begin, end, end_text, false});
      clauses_.push_back(fmt::format("{} in {}:{}", name, begin, end_text));
    }
    return static_cast<int>(indices_.size()) - 1;
  }

  // The new tensor's extent in the dimension of an index.
  static Extent extent_of(const Index& index) { return {index.end_text, index.end}; }

  // Writes `target(subscripts) op value where ...;` and makes the tensor readable.
  void finish(const Tensor& target, bool is_new, const std::string& subscripts, const std::string& op,
              std::string value) {
    std::vector<std::string> clauses = clauses_;
    for (const Let& let : lets_) {
      if (let.used) clauses.push_back(fmt::format("{} = {}", let.name, let.value));
    }
    std::string text = fmt::format("{}{}{} {} {}", is_new ? fmt::format("{} ", name_of(target.type)) : "", target.name,
                                   subscripts, op, value);
    if (!clauses.empty()) text += fmt::format(" where {}", fmt::join(clauses, ", "));
    program_.statements.push_back(text);
    program_.targets.push_back(target.name);
    if (is_new) {
      written_.push_back(target);
      readable_.push_back(target);
      if (random_.chance(60)) {
        program_.results[target.name] = target.name;
      }
    }
  }

  // Makes sure that something fixes the range of every plain index: a term that reads at it and changes nothing much.
  std::string anchored(std::string value, ScalarType type) {
    for (Index& index : indices_) {
      if (!index.plain || index.anchored) continue;
      const Tensor* vector = vector_of(index.end_text);
      const std::string read = fmt::format("{}({})", vector->name, index.name);
      index.anchored = true;
      const std::string test = vector->type == ScalarType::kBool ? read : fmt::format("{} == {}", read, read);
      value = fmt::format("({} ? {} : {})", test, value, literal(kind_of(type)));
    }
    return value;
  }

  const Tensor* vector_of(const std::string& extent) {
    for (const Tensor& tensor : readable_) {
      if (tensor.shape.size() == 1 && tensor.shape[0].text == extent) return &tensor;
    }
    // An extent that is a constant: a parameter for it.
    add_parameter({fmt::format("A{}", inputs_++), random_float(), {{extent, std::stoll(extent)}}});
    return &readable_.back();
  }

  std::string value_of_type(ScalarType type, int depth) {
    make_lets();
    std::string value = expression(kind_of(type), depth);
    value = anchored(std::move(value), type);
    return type == ScalarType::kBool ? value : cast(type, value);
  }

  std::string index_list(int first, int count) {
    if (count == 0) return "";
    std::vector<std::string> names;
    for (int n = first; n < first + count; ++n) names.push_back(indices_[n].name);
    return fmt::format("({})", fmt::join(names, ", "));
  }

  void make_pointwise() {
    const int rank = static_cast<int>(random_.range(0, 3));
    Tensor target{new_tensor_name(), random_type(), {}};
    for (int d = 0; d < rank; ++d) target.shape.push_back(extent_of(indices_[add_index(random_.chance(60))]));
    const std::string value = value_of_type(target.type, 3);
    finish(target, true, index_list(0, rank), "=", value);
  }

  void make_reduction() {
    static constexpr const char* kOperators[] = {"+=", "+=", "+=", "*=", "min=", "max="};
    const std::string op = kOperators[random_.below(6)];
    // Into a tensor that is there (without `!`: on top of it), or a new one.
    const Tensor* existing =
        !written_.empty() && random_.chance(35) ? &written_[random_.below(written_.size())] : nullptr;
    if (existing && existing->type == ScalarType::kBool) existing = nullptr;
    Tensor target = existing ? *existing : Tensor{new_tensor_name(), random_type(), {}};
    if (target.type == ScalarType::kBool) target.type = ScalarType::kInt32;
    const int rank = existing ? static_cast<int>(target.shape.size()) : static_cast<int>(random_.range(0, 2));
    for (int d = 0; d < rank; ++d) {
      if (existing) {
        add_index_over(target.shape[d]);
      } else {
        target.shape.push_back(extent_of(indices_[add_index(random_.chance(60))]));
      }
    }
    const int reductions = static_cast<int>(random_.range(1, 2));
    for (int n = 0; n < reductions; ++n) add_index(random_.chance(60));
    const bool from_identity = existing ? random_.chance(40) : !random_.chance(15);
    const std::string value = value_of_type(target.type, 2);
    finish(target, !existing, index_list(0, rank), op + (from_identity ? "!" : ""), value);
    // Nobody has written it: an in-out, which is a result and whose shape the caller knows.
    if (!existing && !from_identity) {
      program_.results[target.name] = fmt::format("{}{} {}", name_of(target.type), shape_of(target.shape), target.name);
    }
  }

  int add_index_over(const Extent& extent) {
    const std::string name = fmt::format("i{}", indices_.size());
    if (extent.value == 0 || vector_exists(extent.text)) {
      indices_.push_back({name, 0, extent.value, extent.text, true});
    } else {
      indices_.push_back({name, 0, extent.value, extent.text, false});
      clauses_.push_back(fmt::format("{} in 0:{}", name, extent.text));
    }
    return static_cast<int>(indices_.size()) - 1;
  }

  bool vector_exists(const std::string& extent) {
    return std::any_of(readable_.begin(), readable_.end(), [&](const Tensor& tensor) {
      return tensor.shape.size() == 1 && tensor.shape[0].text == extent;
    });
  }

  // H(I(i)) += value, into a new in-out tensor.
  void make_scatter() {
    const int index = add_index(true);
    const Extent extent = {fmt::format("{}", random_.range(1, 6)), 0};
    const int64_t bound = std::stoll(extent.text);
    const Tensor subscripts = index_tensor(indices_[index].end_text, indices_[index].end, bound);
    indices_[index].anchored = true;
    Tensor target{
        new_tensor_name(), random_.chance(50) ? ScalarType::kFloat32 : random_integer(), {{extent.text, bound}}};
    const std::string value = value_of_type(target.type, 2);
    static constexpr const char* kOperators[] = {"+=", "+=", "max=", "min="};
    finish(target, true, fmt::format("({}({}))", subscripts.name, indices_[index].name), kOperators[random_.below(4)],
           value);
    program_.results[target.name] = fmt::format("{}{} {}", name_of(target.type), shape_of(target.shape), target.name);
  }

  Tensor index_tensor(const std::string& extent, int64_t value, int64_t bound) {
    const ScalarType type = kIntegerTypes[random_.below(8)];
    Tensor tensor{fmt::format("A{}", inputs_++), type, {{extent, value}}};
    add_parameter(tensor);
    program_.index_bounds[tensor.name] = bound;
    return tensor;
  }

  // T(i, j) = f(T(...)) : the whole right side is read before anything is written (C3).
  void make_update_in_place() {
    if (written_.empty()) return make_pointwise();
    const Tensor target = written_[random_.below(written_.size())];
    for (const Extent& extent : target.shape) add_index_over(extent);
    const int rank = static_cast<int>(target.shape.size());
    std::string value = fmt::format("{}{}", target.name, index_list(0, rank));
    if (rank == 2 && target.shape[0].text == target.shape[1].text && random_.chance(60)) {
      value = fmt::format("{}({}, {})", target.name, indices_[1].name, indices_[0].name);
    }
    for (Index& index : indices_) index.anchored = true;
    if (target.type == ScalarType::kBool) {
      value = fmt::format("{} || {}", value, expression(Kind::kBool, 1));
    } else {
      static constexpr const char* kOperators[] = {"+", "-", "*"};
      value = fmt::format("{}({} {} {})", name_of(target.type), value, kOperators[random_.below(3)],
                          expression(kind_of(target.type), 2));
    }
    finish(target, false, index_list(0, rank), "=", value);
  }

  // T(h) = h >= 1 && h <= N ? A(h - 1) : 0 where h in 0:N+2
  void make_padded() {
    const Tensor* vector = nullptr;
    for (const Tensor& tensor : readable_) {
      if (tensor.shape.size() == 1 && tensor.type != ScalarType::kBool) vector = &tensor;
    }
    if (!vector) return make_pointwise();
    const Extent inner = vector->shape[0];
    const Extent padded = {fmt::format("{} + 2", inner.text), inner.value + 2};
    Tensor target{new_tensor_name(), vector->type, {padded}};
    indices_.push_back({"i0", 0, padded.value, padded.text, false});
    clauses_.push_back(fmt::format("i0 in 0:{}", padded.text));
    const std::string read = fmt::format("{}(i0 - 1)", vector->name);
    const std::string zero = cast(target.type, literal(kind_of(target.type)));
    const std::string guard = fmt::format("i0 >= 1 && i0 <= {}", inner.text);
    finish(target, true, "(i0)", "=", fmt::format("({}) ? {} : {}", guard, read, zero));
  }

  // ---- expressions

  struct Let {
    std::string name;
    Kind kind;
    std::string value;
    bool used = false;
  };

  void make_lets() {
    if (!random_.chance(20)) return;
    const Kind kind = random_.chance(70) ? Kind::kFloat : Kind::kInteger;
    // A let that nobody uses is left out, so it anchors nothing.
    const std::vector<Index> before = indices_;
    const std::string value = expression(kind, 2);
    indices_ = before;
    lets_.push_back({fmt::format("x{}", total_lets_++), kind, value});
  }

  std::string literal(Kind kind) {
    static constexpr const char* kFloats[] = {"0.5", "2.0", "1.0", "0.0", "3.0", "0.25", "1.5", "-1.0", "4.0"};
    static constexpr const char* kIntegers[] = {"0", "1", "2", "3", "5", "7", "(-1)", "(-3)", "100"};
    switch (kind) {
      case Kind::kFloat: {
        const std::string text = kFloats[random_.below(9)];
        return text[0] == '-' ? fmt::format("({})", text) : text;
      }
      case Kind::kInteger:
        return kIntegers[random_.below(9)];
      case Kind::kBool:
        break;
    }
    return random_.chance(50) ? "(1 < 2)" : "(2 < 1)";
  }

  std::string expression(Kind kind, int depth) {
    if (depth <= 0 || random_.chance(15)) return leaf(kind);
    switch (kind) {
      case Kind::kFloat:
        return float_expression(depth - 1);
      case Kind::kInteger:
        return integer_expression(depth - 1);
      case Kind::kBool:
        break;
    }
    return bool_expression(depth - 1);
  }

  std::string leaf(Kind kind) {
    for (Let& let : lets_) {
      if (let.kind == kind && random_.chance(40)) {
        let.used = true;
        return let.name;
      }
    }
    const uint64_t choice = random_.below(100);
    if (choice < 70) {
      if (std::optional<std::string> read = tensor_read(kind)) return *read;
    }
    if (choice < 80 && kind == Kind::kInteger && !indices_.empty()) {
      const Index& index = indices_[random_.below(indices_.size())];
      return random_.chance(80) ? index.name : fmt::format("int64({})", index.name);
    }
    if (choice < 90) {
      for (const Tensor& scalar : scalars_) {
        if (kind_of(scalar.type) == kind) return scalar.name;
      }
    }
    return literal(kind);
  }

  // A read of a random tensor of the kind, or of another by way of a cast.
  std::optional<std::string> tensor_read(Kind kind) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      const Tensor tensor = readable_[random_.below(readable_.size())];
      const bool fits = kind_of(tensor.type) == kind;
      if (!fits && attempt < 4) continue;
      std::string text = tensor.name;
      std::vector<std::string> subscripts;
      const std::vector<Index> before = indices_;
      for (const Extent& extent : tensor.shape) {
        std::optional<std::string> made = subscript(extent);
        if (!made) break;
        subscripts.push_back(*made);
      }
      if (subscripts.size() != tensor.shape.size()) {
        indices_ = before;
        continue;
      }
      if (!subscripts.empty()) text += fmt::format("({})", fmt::join(subscripts, ", "));
      return fits ? text : converted(text, kind_of(tensor.type), kind);
    }
    return std::nullopt;
  }

  std::string converted(const std::string& text, Kind from, Kind to) {
    if (to == Kind::kFloat) {
      return fmt::format("{}({})", from == Kind::kBool ? "float32" : name_of(random_float()), text);
    }
    if (to == Kind::kInteger) return cast(random_integer(), text);
    return fmt::format("({} > {})", text, literal(from));
  }

  // A subscript into [0, extent): an index alone, affine, constant, or data-dependent.
  std::optional<std::string> subscript(const Extent& extent) {
    if (extent.value == 0) {
      return plain_subscript(extent);
    }
    if (random_.chance(75)) {
      if (std::optional<std::string> made = plain_subscript(extent)) return made;
    }
    std::vector<std::string> candidates;
    for (const Index& index : indices_) {
      if (index.plain) continue;
      const int64_t last = index.end - 1;
      if (last < extent.value) candidates.push_back(index.name);
      if (2 * last + 1 < extent.value) candidates.push_back(fmt::format("2 * {} + 1", index.name));
      if (last + 2 < extent.value) candidates.push_back(fmt::format("{} + 2", index.name));
      if (index.begin >= 1 && last <= extent.value) candidates.push_back(fmt::format("{} - 1", index.name));
      if (last < extent.value) candidates.push_back(fmt::format("{} - {}", extent.value - 1, index.name));
      for (const Index& other : indices_) {
        if (other.plain || other.name == index.name) continue;
        if (last + other.end - 1 < extent.value) candidates.push_back(fmt::format("{} + {}", index.name, other.name));
      }
    }
    candidates.push_back(fmt::format("{}", random_.range(0, extent.value - 1)));
    if (random_.chance(10)) {
      if (std::optional<std::string> gathered = gather(extent.value)) return gathered;
    }
    return candidates[random_.below(candidates.size())];
  }

  std::optional<std::string> plain_subscript(const Extent& extent) {
    std::vector<Index*> fitting;
    for (Index& index : indices_) {
      if (index.plain && index.end_text == extent.text) fitting.push_back(&index);
    }
    if (fitting.empty()) return std::nullopt;
    Index& index = *fitting[random_.below(fitting.size())];
    if (index.anchored && extent.value > 0 && random_.chance(10)) {
      return fmt::format("{} - 1 - {}", extent.text, index.name);
    }
    index.anchored = true;
    return index.name;
  }

  // I(i), of an integer tensor made for extents of this value.
  std::optional<std::string> gather(int64_t bound) {
    for (Index& index : indices_) {
      if (!index.plain) continue;
      index.anchored = true;
      return fmt::format("{}({})", index_tensor(index.end_text, index.end, bound).name, index.name);
    }
    return std::nullopt;
  }

  std::string float_expression(int depth) {
    const auto operand = [&] { return expression(Kind::kFloat, depth); };
    static constexpr const char* kUnary[] = {"abs",  "relu", "tanh", "sigmoid", "sin",   "cos",   "exp",  "floor",
                                             "rint", "erf",  "atan", "sign",    "trunc", "round", "ceil", "exp2"};
    static constexpr const char* kBinary[] = {"min", "max", "fmin", "fmax", "atan2", "hypot", "copysign", "fdim"};
    static constexpr const char* kTernary[] = {"fma", "max", "clamp"};
    switch (random_.below(14)) {
      case 0:
      case 1:
        return fmt::format("({} + {})", operand(), operand());
      case 2:
        return fmt::format("({} - {})", operand(), operand());
      case 3:
      case 4:
        return fmt::format("({} * {})", operand(), operand());
      case 5:
        return fmt::format("({} / (abs({}) + 1.0))", operand(), operand());
      case 6:
        return fmt::format("{}({})", kUnary[random_.below(std::size(kUnary))], operand());
      case 7:
        return fmt::format("{}({}, {})", kBinary[random_.below(std::size(kBinary))], operand(), operand());
      case 8:
        return fmt::format("(-{})", operand());
      case 9:
        return fmt::format("sqrt(abs({}))", operand());
      case 10:
        return fmt::format("({} ? {} : {})", expression(Kind::kBool, depth), operand(), operand());
      case 11:
        return fmt::format("{}({})", name_of(random_float()), expression(Kind::kInteger, depth));
      case 12:
        return fmt::format("clamp({}, -2.0, 2.0)", operand());
      default:
        return fmt::format("{}({}, {}, {})", kTernary[random_.below(3)], operand(), operand(), operand());
    }
  }

  std::string integer_expression(int depth) {
    const auto operand = [&] { return expression(Kind::kInteger, depth); };
    switch (random_.below(15)) {
      case 0:
      case 1:
        return fmt::format("({} + {})", operand(), operand());
      case 2:
        return fmt::format("({} - {})", operand(), operand());
      case 3:
      case 4:
        return fmt::format("({} * {})", operand(), operand());
      case 5:
        return fmt::format("({} / int32({}))", operand(), operand());
      case 6:
        return fmt::format("({} % int32({}))", operand(), operand());
      case 7:
        return fmt::format("{}({}, {})", random_.chance(50) ? "min" : "max", operand(), operand());
      case 8:
        return fmt::format("{}({})", random_.chance(50) ? "abs" : "sign", operand());
      case 9: {
        static constexpr const char* kNames[] = {"bitwise_and", "bitwise_or", "bitwise_xor"};
        return fmt::format("{}({}, {})", kNames[random_.below(3)], operand(), operand());
      }
      case 10:
        return fmt::format("shift_{}({}, {})", random_.chance(50) ? "left" : "right", operand(), random_.below(9));
      case 11:
        return fmt::format("{}({})", random_.chance(50) ? "popcount" : "bitwise_not", operand());
      case 12:
        return fmt::format("({} ? {} : {})", expression(Kind::kBool, depth), operand(), operand());
      case 13:
        return cast(random_integer(), expression(Kind::kFloat, depth));
      default:
        return cast(random_integer(), operand());
    }
  }

  std::string bool_expression(int depth) {
    static constexpr const char* kComparisons[] = {"<", "<=", ">", ">=", "==", "!="};
    const Kind kind = random_.chance(50) ? Kind::kFloat : Kind::kInteger;
    switch (random_.below(7)) {
      case 0:
        return fmt::format("({} && {})", expression(Kind::kBool, depth), expression(Kind::kBool, depth));
      case 1:
        return fmt::format("({} || {})", expression(Kind::kBool, depth), expression(Kind::kBool, depth));
      case 2:
        return fmt::format("(!{})", expression(Kind::kBool, depth));
      case 3:
        return fmt::format("isnan({})", expression(Kind::kFloat, depth));
      default:
        return fmt::format("({} {} {})", expression(kind, depth), kComparisons[random_.below(6)],
                           expression(kind, depth));
    }
  }

  Random random_;
  RandomProgram program_;
  std::vector<Extent> extents_;
  std::vector<Tensor> readable_;
  std::vector<Tensor> written_;
  std::vector<Tensor> scalars_;
  std::vector<Index> indices_;  // of the statement being made
  std::vector<std::string> clauses_;
  std::vector<Let> lets_;
  int inputs_ = 0;
  int temporaries_ = 0;
  int total_lets_ = 0;
};

}  // namespace

std::string RandomProgram::source() const {
  const std::set<std::string> written(targets.begin(), targets.end());
  std::vector<std::string> declared;
  for (const auto& [name, declaration] : results) {
    if (written.count(name)) declared.push_back(declaration);
  }
  // Something must be handed back: the last tensor written, if nothing else was chosen.
  if (declared.empty() && !targets.empty()) declared.push_back(targets.back());
  std::string text = fmt::format("def f({}) -> ({}) {{\n", fmt::join(parameters, ", "), fmt::join(declared, ", "));
  for (const std::string& statement : statements) text += fmt::format("  {}\n", statement);
  return text + "}\n";
}

std::string RandomProgram::describe() const {
  std::string text = fmt::format("# seed {}", seed);
  for (const auto& [name, value] : sizes) text += fmt::format(", {} = {}", name, value);
  for (const auto& [name, value] : compiled_in) text += fmt::format(", {} = {}", name, value);
  return text + "\n" + source();
}

ir::Given RandomProgram::given() const { return {{}, compiled_in, sizes}; }

RandomProgram generate_program(uint64_t seed) { return Generator(seed).run(); }

}  // namespace tc::testing
