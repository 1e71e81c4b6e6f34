#include "tests/random/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/random/expressions.h"
#include "tests/random/scope.h"

namespace tc::testing {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : scope_(seed) {}

  RandomProgram run() {
    make_sizes();
    make_parameters();
    const int64_t statements = random_.range(1, 5);
    for (int64_t n = 0; n < statements; ++n) make_statement();
    return std::move(scope_.program);
  }

 private:
  // ---- sizes and parameters

  void make_sizes() {
    static constexpr int64_t kValues[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20, 33};
    const int64_t count = random_.range(1, 3);
    for (int64_t n = 0; n < count; ++n) {
      const std::string name = fmt::format("N{}", n);
      const int64_t value = random_.chance(4) ? 0 : kValues[random_.below(std::size(kValues))];
      scope_.program.sizes[name] = value;
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

  void make_parameters() {
    // Every size is the extent of some parameter, so that a call gives it.
    for (const auto& [name, value] : scope_.program.sizes) {
      scope_.add_parameter({scope_.new_input_name(), random_type(), {{name, value}}});
    }
    for (int64_t n = random_.range(1, 3); n > 0; --n) {
      scope_.add_parameter({scope_.new_input_name(), random_type(), declared_shape(random_.range(1, 3))});
    }
    for (int64_t n = random_.range(0, 2); n > 0; --n) {
      const ScalarType type = random_.chance(70) ? scope_.random_float_of_scalar() : scope_.random_integer();
      const RandomTensor scalar{fmt::format("s{}", n), type, {}};
      scope_.program.parameters.push_back(fmt::format("{} {}", name_of(type), scalar.name));
      scope_.scalars.push_back(scalar);
    }
    if (random_.chance(30)) {
      const RandomTensor stride{"w0", random_.chance(70) ? ScalarType::kInt32 : ScalarType::kInt64, {}};
      scope_.program.parameters.push_back(fmt::format("{} {}", name_of(stride.type), stride.name));
      scope_.program.compiled_in[stride.name] = random_.range(1, 3);
      scope_.strides.push_back(stride);
    }
  }

  ScalarType random_type() {
    if (random_.chance(62)) return scope_.random_float();
    return random_.chance(90) ? scope_.random_integer() : ScalarType::kBool;
  }

  // ---- statements

  void make_statement() {
    scope_.indices.clear();
    clauses_.clear();
    scope_.lets.clear();
    const uint64_t choice = random_.below(100);
    if (choice < 36) {
      make_pointwise();
    } else if (choice < 72) {
      make_reduction();
    } else if (choice < 80) {
      make_scatter();
    } else if (choice < 90) {
      make_update_in_place();
    } else if (choice < 95) {
      make_padded();
    } else {
      make_placed();
    }
  }

  std::string new_tensor_name() { return fmt::format("T{}", temporaries_++); }

  int add_index(bool plain) {
    const std::string name = fmt::format("i{}", scope_.indices.size());
    const Extent extent = extents_[random_.below(extents_.size())];
    if (plain || extent.value == 0) {
      scope_.indices.push_back({name, 0, extent.value, extent.text, true});
    } else {
      const int64_t begin = random_.chance(60) ? 0 : random_.range(0, extent.value - 1);
      // Up to the extent, or to a constant below it.
      const int64_t end = random_.chance(60) ? extent.value : random_.range(begin + 1, extent.value);
      const std::string end_text = end == extent.value ? extent.text : fmt::format("{}", end);
      scope_.indices.push_back({name, begin, end, end_text, false});
      clauses_.push_back(fmt::format("{} in {}:{}", name, begin, end_text));
    }
    return static_cast<int>(scope_.indices.size()) - 1;
  }

  // The new tensor's extent in the dimension of an index.
  static Extent extent_of(const RandomIndex& index) { return {index.end_text, index.end}; }

  // Writes `target(subscripts) op value where ...;` and makes the tensor readable.
  void finish(const RandomTensor& target, bool is_new, const std::string& subscripts, const std::string& op,
              std::string value) {
    std::vector<std::string> clauses = clauses_;
    for (const RandomLet& let : scope_.lets) {
      if (let.used) clauses.push_back(fmt::format("{} = {}", let.name, let.value));
    }
    std::string text = fmt::format("{}{}{} {} {}", is_new ? fmt::format("{} ", name_of(target.type)) : "", target.name,
                                   subscripts, op, value);
    if (!clauses.empty()) text += fmt::format(" where {}", fmt::join(clauses, ", "));
    scope_.program.statements.push_back(text);
    scope_.program.targets.push_back(target.name);
    if (is_new) {
      written_.push_back(target);
      scope_.readable.push_back(target);
      if (random_.chance(60)) {
        scope_.program.results[target.name] = target.name;
      }
    }
  }

  // Makes sure that something fixes the range of every plain index: a term that reads at it and changes nothing much.
  std::string anchored(std::string value, ScalarType type) {
    for (RandomIndex& index : scope_.indices) {
      if (!index.plain || index.anchored) continue;
      const RandomTensor* vector = vector_of(index.end_text);
      const std::string read = fmt::format("{}({})", vector->name, index.name);
      index.anchored = true;
      const std::string test = vector->type == ScalarType::kBool ? read : fmt::format("{} == {}", read, read);
      value = fmt::format("({} ? {} : {})", test, value, expressions_.literal(kind_of(type)));
    }
    return value;
  }

  const RandomTensor* vector_of(const std::string& extent) {
    for (const RandomTensor& tensor : scope_.readable) {
      if (tensor.shape.size() == 1 && tensor.shape[0].text == extent) return &tensor;
    }
    // An extent that is a constant: a parameter for it.
    scope_.add_parameter({scope_.new_input_name(), scope_.random_float(), {{extent, std::stoll(extent)}}});
    return &scope_.readable.back();
  }

  std::string value_of_type(ScalarType type, int depth) {
    make_lets();
    std::string value = expressions_.expression(kind_of(type), depth);
    value = anchored(std::move(value), type);
    return type == ScalarType::kBool ? value : cast(type, value);
  }

  std::string index_list(int first, int count) {
    if (count == 0) return "";
    std::vector<std::string> names;
    for (int n = first; n < first + count; ++n) names.push_back(scope_.indices[n].name);
    return fmt::format("({})", fmt::join(names, ", "));
  }

  void make_pointwise() {
    const int rank = static_cast<int>(random_.range(0, 3));
    RandomTensor target{new_tensor_name(), random_type(), {}};
    for (int d = 0; d < rank; ++d) target.shape.push_back(extent_of(scope_.indices[add_index(random_.chance(60))]));
    const std::string value = value_of_type(target.type, 3);
    finish(target, true, index_list(0, rank), "=", value);
  }

  void make_reduction() {
    static constexpr const char* kOperators[] = {"+=", "+=", "+=", "*=", "min=", "max="};
    const std::string op = kOperators[random_.below(6)];
    // Into a tensor that is there (without `!`: on top of it), or a new one.
    const RandomTensor* existing =
        !written_.empty() && random_.chance(35) ? &written_[random_.below(written_.size())] : nullptr;
    if (existing && existing->type == ScalarType::kBool) existing = nullptr;
    RandomTensor target = existing ? *existing : RandomTensor{new_tensor_name(), random_type(), {}};
    if (target.type == ScalarType::kBool) target.type = ScalarType::kInt32;
    const int rank = existing ? static_cast<int>(target.shape.size()) : static_cast<int>(random_.range(0, 2));
    for (int d = 0; d < rank; ++d) {
      if (existing) {
        add_index_over(target.shape[d]);
      } else {
        target.shape.push_back(extent_of(scope_.indices[add_index(random_.chance(60))]));
      }
    }
    const int reductions = static_cast<int>(random_.range(1, 2));
    for (int n = 0; n < reductions; ++n) add_index(random_.chance(60));
    const bool from_identity = existing ? random_.chance(40) : !random_.chance(15);
    const std::string value = value_of_type(target.type, 2);
    finish(target, !existing, index_list(0, rank), op + (from_identity ? "!" : ""), value);
    // Nobody has written it: an in-out, which is a result and whose shape the caller knows.
    if (!existing && !from_identity) {
      scope_.program.results[target.name] =
          fmt::format("{}{} {}", name_of(target.type), shape_text(target.shape), target.name);
    }
  }

  int add_index_over(const Extent& extent) {
    const std::string name = fmt::format("i{}", scope_.indices.size());
    if (extent.value == 0 || vector_exists(extent.text)) {
      scope_.indices.push_back({name, 0, extent.value, extent.text, true});
    } else {
      scope_.indices.push_back({name, 0, extent.value, extent.text, false});
      clauses_.push_back(fmt::format("{} in 0:{}", name, extent.text));
    }
    return static_cast<int>(scope_.indices.size()) - 1;
  }

  bool vector_exists(const std::string& extent) {
    return std::any_of(scope_.readable.begin(), scope_.readable.end(), [&](const RandomTensor& tensor) {
      return tensor.shape.size() == 1 && tensor.shape[0].text == extent;
    });
  }

  // H(I(i)) += value, into a new in-out tensor.
  void make_scatter() {
    const int index = add_index(true);
    const Extent extent = {fmt::format("{}", random_.range(1, 6)), 0};
    const int64_t bound = std::stoll(extent.text);
    const RandomTensor subscripts =
        scope_.add_index_tensor(scope_.indices[index].end_text, scope_.indices[index].end, bound);
    scope_.indices[index].anchored = true;
    RandomTensor target{
        new_tensor_name(), random_.chance(50) ? ScalarType::kFloat32 : scope_.random_integer(), {{extent.text, bound}}};
    std::string value = value_of_type(target.type, 2);
    static constexpr const char* kOperators[] = {"+=", "+=", "max=", "min="};
    std::string op = kOperators[random_.below(4)];
    if (random_.chance(25)) {
      // It reads itself, at the same places or at others (C3); with `!` after every element got the identity (C2).
      const std::string own = random_.chance(50) ? fmt::format("{}({})", subscripts.name, scope_.indices[index].name)
                                                 : fmt::format("{}", random_.range(0, bound - 1));
      value = cast(target.type, fmt::format("{}({}) {} {}", target.name, own, random_.chance(50) ? "+" : "-", value));
      if (random_.chance(60)) op += "!";
    }
    finish(target, true, fmt::format("({}({}))", subscripts.name, scope_.indices[index].name), op, value);
    scope_.program.results[target.name] =
        fmt::format("{}{} {}", name_of(target.type), shape_text(target.shape), target.name);
  }

  // T(i, j) = f(T(...)) : the whole right side is read before anything is written (C3).
  void make_update_in_place() {
    if (written_.empty()) return make_pointwise();
    const RandomTensor target = written_[random_.below(written_.size())];
    for (const Extent& extent : target.shape) add_index_over(extent);
    const int rank = static_cast<int>(target.shape.size());
    std::string value = fmt::format("{}{}", target.name, index_list(0, rank));
    if (rank == 2 && target.shape[0].text == target.shape[1].text && random_.chance(60)) {
      value = fmt::format("{}({}, {})", target.name, scope_.indices[1].name, scope_.indices[0].name);
    }
    for (RandomIndex& index : scope_.indices) index.anchored = true;
    if (target.type == ScalarType::kBool) {
      value = fmt::format("{} || {}", value, expressions_.expression(Kind::kBool, 1));
    } else {
      static constexpr const char* kOperators[] = {"+", "-", "*"};
      value = fmt::format("{}({} {} {})", name_of(target.type), value, kOperators[random_.below(3)],
                          expressions_.expression(kind_of(target.type), 2));
    }
    finish(target, false, index_list(0, rank), "=", value);
  }

  // T(h) = h >= 1 && h <= N ? A(h - 1) : 0 where h in 0:N+2
  void make_padded() {
    const RandomTensor* vector = nullptr;
    for (const RandomTensor& tensor : scope_.readable) {
      if (tensor.shape.size() == 1 && tensor.type != ScalarType::kBool) vector = &tensor;
    }
    if (!vector) return make_pointwise();
    const Extent inner = vector->shape[0];
    const Extent padded = {fmt::format("{} + 2", inner.text), inner.value + 2};
    RandomTensor target{new_tensor_name(), vector->type, {padded}};
    scope_.indices.push_back({"i0", 0, padded.value, padded.text, false});
    clauses_.push_back(fmt::format("i0 in 0:{}", padded.text));
    const std::string read = fmt::format("{}(i0 - 1)", vector->name);
    const std::string zero = cast(target.type, expressions_.literal(kind_of(target.type)));
    const std::string guard = fmt::format("i0 >= 1 && i0 <= {}", inner.text);
    finish(target, true, "(i0)", "=", fmt::format("({}) ? {} : {}", guard, read, zero));
  }

  // T(2 * i + 1) = value: the left side says where (C7). Now and then a second statement fills gaps, and a third reads
  // the tensor that it writes.
  void make_placed() {
    const int index = add_index(random_.chance(50));
    const RandomIndex range = scope_.indices[index];
    if (range.end == 0) {
      scope_.indices.clear();
      return make_pointwise();
    }
    const bool backward = random_.chance(25);
    const int64_t step = backward ? 1 : random_.range(1, 3);
    const int64_t offset = random_.range(0, 3);
    RandomTensor target{new_tensor_name(), random_type(), {}};
    const auto place = [&](int64_t at) {
      if (backward) return fmt::format("{} + {} - {}", range.end_text, at, range.name);
      return fmt::format("{} * {} + {}", step, range.name, at);
    };
    target.shape.push_back(backward ? Extent{fmt::format("{} + {}", range.end_text, offset + 1 - range.begin),
                                             range.end + offset + 1 - range.begin}
                                    : Extent{fmt::format("{} * ({} - 1) + {}", step, range.end_text, offset + 1),
                                             step * (range.end - 1) + offset + 1});
    const std::string value = value_of_type(target.type, 2);
    finish(target, true, fmt::format("({})", place(offset)), "=", value);
    if (random_.chance(50) || offset == 0 || target.type == ScalarType::kBool) return;
    const std::string lower = place(random_.range(0, offset - 1));
    const std::string again = cast(target.type, fmt::format("{} + {}({})", value, target.name, place(offset)));
    finish(target, false, fmt::format("({})", lower), random_.chance(70) ? "=" : "+=", again);
  }

  // ---- expressions

  void make_lets() {
    if (!random_.chance(20)) return;
    const Kind kind = random_.chance(70) ? Kind::kFloat : Kind::kInteger;
    // A let that nobody uses is left out, so it anchors nothing.
    const std::vector<RandomIndex> before = scope_.indices;
    const std::string value = expressions_.expression(kind, 2);
    scope_.indices = before;
    scope_.lets.push_back({fmt::format("x{}", total_lets_++), kind, value});
  }

  Scope scope_;
  Random& random_ = scope_.random;
  Expressions expressions_{scope_};
  std::vector<Extent> extents_;
  std::vector<RandomTensor> written_;
  std::vector<std::string> clauses_;
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
