#include "tc/interp/interpreter.h"

#include <cmath>
#include <optional>
#include <utility>

#include "tc/interp/evaluator.h"
#include "tc/support/check.h"

namespace tc::interp {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

/// The number of elements, or nothing if it overflows what we can hold.
std::optional<int64_t> element_count(const std::vector<int64_t>& shape) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > kLargest) return std::nullopt;
  }
  return count;
}

template <class Numbers>
Storage<Numbers> load(const Value& value) {
  Storage<Numbers> result{value.type, {}, {}};
  result.floats.reserve(value.floats.size());
  result.integers.reserve(value.integers.size());
  for (double x : value.floats) result.floats.push_back(Numbers::exact(x));
  for (int64_t x : value.integers) result.integers.push_back(Numbers::exact(wrap(value.type, x)));
  return result;
}

template <class Numbers>
Storage<Numbers> zeros(ScalarType type, int64_t elements) {
  Storage<Numbers> result{type, {}, {}};
  if (is_float(type)) {
    result.floats.assign(elements, Numbers::exact(0.0));
  } else {
    result.integers.assign(elements, Numbers::exact(int64_t{0}));
  }
  return result;
}

double identity_float(ir::Assign assign) {
  switch (assign) {
    case ir::Assign::kMul:
      return 1;
    case ir::Assign::kMin:
      return INFINITY;
    case ir::Assign::kMax:
      return -INFINITY;
    default:
      return 0;
  }
}

int64_t identity_integer(ir::Assign assign, ScalarType type) {
  switch (assign) {
    case ir::Assign::kMul:
      return 1;
    case ir::Assign::kMin:
      return float_to_integer(type, INFINITY);
    case ir::Assign::kMax:
      return float_to_integer(type, -INFINITY);
    default:
      return 0;
  }
}

/// Thrown by a run that was cancelled, and the iterations after which it looks whether it was.
struct Cancelled {};
constexpr int64_t kBetweenLooks = 1 << 16;

/// Runs one statement over the tensors.
template <class Numbers>
class StatementRun {
 public:
  using Float = typename Numbers::Float;
  using Integer = typename Numbers::Integer;

  StatementRun(const ir::Statement& statement, const Code& code, std::vector<Storage<Numbers>>& tensors,
               const std::vector<Storage<Numbers>>& scalars, const RunOptions& options, const AccuracyTable& accuracy)
      : statement_(statement),
        code_(code),
        target_(tensors[code.target.tensor]),
        options_(options),
        evaluator_(code, tensors, scalars, accuracy),
        accumulator_(ir::from_halide(statement.accumulator)) {}

  void run() {
    if (statement_.initialises) initialise_from(0);
    if (is_float(target_.type) && statement_.assign == ir::Assign::kAdd) {
      const SumKind kind = code_.sums_float8_products ? SumKind::kFloat8Products : SumKind::kTerms;
      accumulate(
          sums_, [](auto& sum, const Float& term) { sum.add(term); },
          [&](const auto& sum) { return sum.result(accumulator_, kind); });
    } else if (is_float(target_.type) && statement_.assign == ir::Assign::kMul) {
      accumulate(
          products_, [](auto& product, const Float& factor) { product.multiply(factor); },
          [&](const auto& product) { return product.result(accumulator_); });
    } else if (is_float(target_.type)) {
      loop(0, [this](int64_t at) { update_float(at); });
    } else {
      loop(0, [this](int64_t at) { update_integer(at); });
    }
    if (target_is_lost_) forget_target();
  }

  const std::vector<int64_t>& indices() { return evaluator_.indices(); }

 private:
  // Calls `body(i)` for each iteration, with the index set.
  template <typename Body>
  void each(size_t depth, Body body) {
    evaluator_.next_instance();
    const int64_t begin = Numbers::value(evaluator_.integer(code_.loops[depth].begin));
    const int64_t end = Numbers::value(evaluator_.integer(code_.loops[depth].end));
    const bool is_innermost = depth + 1 == code_.loops.size();
    if (is_innermost) evaluator_.begin_row(begin, end);
    int64_t& index = evaluator_.indices()[depth];
    for (index = begin; index < end; ++index) {
      if (++iterations_ % kBetweenLooks == 0 && options_.cancel.stop_requested()) throw Cancelled();
      body();
    }
    if (is_innermost) evaluator_.end_row();
  }

  void initialise_from(size_t depth) {
    if (depth < static_cast<size_t>(code_.map_loops)) return each(depth, [&] { initialise_from(depth + 1); });
    evaluator_.next_instance();
    if (code_.map_guard >= 0) {
      const Integer guard = evaluator_.integer(code_.map_guard);
      if (Numbers::sure(guard) && Numbers::value(guard) == 0) return;
      if (!Numbers::sure(guard)) target_is_lost_ = true;
    }
    const int64_t at = evaluator_.target_offset();
    if (at < 0) {
      target_is_lost_ = true;
    } else if (is_float(target_.type)) {
      target_.floats[at] = Numbers::exact(identity_float(statement_.assign));
    } else {
      target_.integers[at] = Numbers::exact(identity_integer(statement_.assign, target_.type));
    }
  }

  // Calls `update(offset of the target)` for each instance that exists.
  template <typename Update>
  void loop(size_t depth, Update update) {
    if (depth == static_cast<size_t>(code_.map_loops)) offset_is_known_ = false;
    if (depth == code_.loops.size()) return instance(update);
    each(depth, [&] { loop(depth + 1, update); });
  }

  template <typename Update>
  void instance(Update update) {
    evaluator_.next_instance();
    instance_is_sure_ = true;
    if (code_.guard >= 0) {
      const Integer guard = evaluator_.integer(code_.guard);
      instance_is_sure_ = Numbers::sure(guard);
      if (instance_is_sure_ && Numbers::value(guard) == 0) return;
    }
    if (!offset_is_known_) {
      offset_ = evaluator_.target_offset();
      offset_is_known_ = true;
    }
    if (offset_ < 0) {
      target_is_lost_ = true;
    } else {
      update(offset_);
    }
  }

  // An instance that may not exist leaves its element unknown.
  Float value_float() {
    Float value = evaluator_.real(code_.value);
    if constexpr (Numbers::kBounded) {
      if (!instance_is_sure_) value = bounded::unknown();
    }
    return value;
  }

  Integer value_integer() {
    Integer value = evaluator_.integer(code_.value);
    if constexpr (Numbers::kBounded) value.sure = value.sure && instance_is_sure_;
    return value;
  }

  Float stored(const Float& value) const {
    if constexpr (Numbers::kBounded) {
      return bounded::convert(accumulator_, target_.type, value);
    } else {
      return options_.exact ? round_to(target_.type, value) : value;
    }
  }

  template <typename Accumulator, typename Combine, typename Finish>
  void accumulate(std::vector<Accumulator>& accumulators, Combine combine, Finish finish) {
    std::vector<uint8_t> touched(target_.floats.size(), 0);
    accumulators.resize(target_.floats.size());
    loop(0, [&](int64_t at) {
      if (!touched[at]) {
        accumulators[at].start(target_.floats[at]);
        touched[at] = 1;
      }
      combine(accumulators[at], value_float());
    });
    for (size_t at = 0; at < touched.size(); ++at) {
      if (touched[at]) target_.floats[at] = stored(finish(accumulators[at]));
    }
  }

  void update_float(int64_t at) {
    const Float value = value_float();
    Float& element = target_.floats[at];
    switch (statement_.assign) {
      case ir::Assign::kMin:
        element = Numbers::min(element, value);
        break;
      case ir::Assign::kMax:
        element = Numbers::max(element, value);
        break;
      default:
        element = value;
    }
    element = stored(element);
  }

  void update_integer(int64_t at) {
    const Integer value = value_integer();
    Integer& element = target_.integers[at];
    const ScalarType type = target_.type;
    element = Numbers::map(
        [&](int64_t old, int64_t x) {
          switch (statement_.assign) {
            // Narrow sums wrap to the same integers as an int32 accumulator that is converted once (T3).
            case ir::Assign::kAdd:
              return add(type, old, x);
            case ir::Assign::kMul:
              return multiply(type, old, x);
            case ir::Assign::kMin:
              return less(type, x, old) ? x : old;
            case ir::Assign::kMax:
              return less(type, old, x) ? x : old;
            default:
              return wrap(type, x);
          }
        },
        statement_.assign == ir::Assign::kSet ? Numbers::exact(int64_t{0}) : element, value);
  }

  void forget_target() {
    if constexpr (Numbers::kBounded) {
      for (Bounded& x : target_.floats) x = bounded::unknown();
      for (Sure& x : target_.integers) x.sure = false;
    }
  }

  const ir::Statement& statement_;
  const Code& code_;
  Storage<Numbers>& target_;
  const RunOptions& options_;
  Evaluator<Numbers> evaluator_;
  ScalarType accumulator_;
  std::vector<typename Numbers::Sum> sums_;
  std::vector<typename Numbers::Product> products_;
  int64_t iterations_ = 0;
  int64_t offset_ = 0;  // of the target, for the current map instance
  bool offset_is_known_ = false;
  bool instance_is_sure_ = true;
  bool target_is_lost_ = false;  // which element is written hangs on a rounding error
};

Error out_of_bounds(const ir::Program& program, const ir::Statement& statement, const OutOfBounds& fault,
                    const std::vector<int64_t>& indices) {
  std::string values;
  for (size_t i = 0; i < statement.indices.size(); ++i) {
    values += fmt::format("{}{} = {}", i == 0 ? "" : ", ", statement.indices[i].name, indices[i]);
  }
  const Subscript& subscript = fault.access->subscripts[fault.dimension];
  const std::string message = fmt::format("subscript {} of '{}' is {}, outside [0, {}), in statement {}{}{}",
                                          fault.dimension, program.tensors[fault.access->tensor].name, fault.subscript,
                                          subscript.extent, statement.id, values.empty() ? "" : " at ", values);
  TC_CHECK(subscript.depends_on_data, "{}, although it was proved in bounds", message);
  return program.source ? Error(program.source, statement.range, message) : Error(message);
}

template <class Numbers>
Result<void> run_statement(const ir::Program& program, const ir::Statement& statement,
                           std::vector<Storage<Numbers>>& tensors, const std::vector<Storage<Numbers>>& scalars,
                           const RunOptions& options, const AccuracyTable& accuracy) {
  const Code code = compile(program, statement);
  for (const Node& node : code.nodes) {
    if (node.op != Op::kScalar) continue;
    const Storage<Numbers>& scalar = scalars[node.payload];
    if (scalar.floats.empty() && scalar.integers.empty()) {
      return fail("scalar '{}' of '{}' is missing", program.scalars[node.payload].name, program.name);
    }
  }
  StatementRun<Numbers> run(statement, code, tensors, scalars, options, accuracy);
  try {
    run.run();
  } catch (const OutOfBounds& fault) {
    return tl::unexpected(out_of_bounds(program, statement, fault, run.indices()));
  } catch (const Cancelled&) {
    return tl::unexpected(Error("the run was cancelled").with_kind(ErrorKind::kCancelled));
  }
  return {};
}

Result<void> check_value(const std::string& name, const Value& value, ScalarType type,
                         const std::vector<int64_t>& shape) {
  if (value.type != type) return fail("'{}' is {}, not {}", name, name_of(type), name_of(value.type));
  if (value.shape != shape) {
    return fail("'{}' has shape {}, not {}", name, shape_text(shape), shape_text(value.shape));
  }
  const size_t held = is_float(type) ? value.floats.size() : value.integers.size();
  if (element_count(shape) != static_cast<int64_t>(held)) {
    return fail("'{}' of shape {} is given {} elements", name, shape_text(shape), held);
  }
  return {};
}

Result<void> check_inputs(const ir::Program& program, const Environment& inputs) {
  for (const auto& [name, value] : inputs) {
    const ir::Tensor* tensor = program.find_tensor(name);
    if (!program.find_scalar(name) && (!tensor || tensor->role == ir::Role::kTemporary)) {
      return fail("'{}' has no argument or result '{}'", program.name, name);
    }
  }
  for (const ir::Tensor& tensor : program.tensors) {
    const std::vector<int64_t> shape = constant_extents(tensor);
    if (!element_count(shape)) return fail("'{}' of shape {} is too large", tensor.name, shape_text(shape));
    const auto given = inputs.find(tensor.name);
    if (given != inputs.end()) {
      TC_TRY_VOID(check_value(tensor.name, given->second, ir::from_halide(tensor.type), shape));
    } else if (tensor.role == ir::Role::kInput || tensor.role == ir::Role::kInOut) {
      return fail("tensor '{}' of '{}' is missing", tensor.name, program.name);
    }
  }
  for (const ir::Scalar& scalar : program.scalars) {
    const auto given = inputs.find(scalar.name);
    if (given != inputs.end()) {
      TC_TRY_VOID(check_value(scalar.name, given->second, ir::from_halide(scalar.type), {}));
    } else if (!scalar.specialised) {
      return fail("scalar '{}' of '{}' is missing", scalar.name, program.name);
    }
  }
  return {};
}

/// All tensors of the program, in its order, after the last statement.
template <class Numbers>
Result<std::vector<Storage<Numbers>>> run_all(const ir::Program& program, const Environment& inputs,
                                              const RunOptions& options, const AccuracyTable& accuracy) {
  TC_TRY_VOID(check_inputs(program, inputs));
  std::vector<Storage<Numbers>> tensors;
  std::vector<Storage<Numbers>> scalars;
  for (const ir::Tensor& tensor : program.tensors) {
    const auto given = inputs.find(tensor.name);
    tensors.push_back(given != inputs.end()
                          ? load<Numbers>(given->second)
                          : zeros<Numbers>(ir::from_halide(tensor.type), *element_count(constant_extents(tensor))));
  }
  for (const ir::Scalar& scalar : program.scalars) {
    const auto given = inputs.find(scalar.name);
    scalars.push_back(given != inputs.end() ? load<Numbers>(given->second) : Storage<Numbers>{});
  }
  for (const ir::Statement& statement : program.statements) {
    TC_TRY_VOID(run_statement(program, statement, tensors, scalars, options, accuracy));
  }
  return tensors;
}

bool is_handed_back(const ir::Tensor& tensor) {
  return tensor.role == ir::Role::kResult || tensor.role == ir::Role::kInOut;
}

}  // namespace

int64_t Value::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Value Value::zeros(ScalarType type, std::vector<int64_t> shape) {
  Value result{type, std::move(shape), {}, {}};
  if (is_float(type)) {
    result.floats.assign(result.elements(), 0);
  } else {
    result.integers.assign(result.elements(), 0);
  }
  return result;
}

Result<Environment> run(const ir::Program& program, const Environment& inputs, const RunOptions& options) {
  TC_TRY(tensors, run_all<PlainNumbers>(program, inputs, options, default_accuracy));
  Environment results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_handed_back(program.tensors[i])) continue;
    Value value{tensors[i].type, constant_extents(program.tensors[i]), std::move(tensors[i].floats),
                std::move(tensors[i].integers)};
    for (double& x : value.floats) x = round_to(value.type, x);
    results.emplace(program.tensors[i].name, std::move(value));
  }
  return results;
}

Result<BoundedEnvironment> run_bounded(const ir::Program& program, const Environment& inputs,
                                       const AccuracyTable& accuracy, std::stop_token cancel) {
  TC_TRY(tensors, run_all<BoundedNumbers>(program, inputs, {.cancel = cancel}, accuracy));
  BoundedEnvironment results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_handed_back(program.tensors[i])) continue;
    BoundedValue result{{tensors[i].type, constant_extents(program.tensors[i]), {}, {}}, {}};
    for (const Bounded& x : tensors[i].floats) {
      result.value.floats.push_back(x.value);
      result.errors.push_back(x.error);
    }
    for (const Sure& x : tensors[i].integers) {
      result.value.integers.push_back(x.value);
      result.errors.push_back(x.sure ? 0 : INFINITY);
    }
    results.emplace(program.tensors[i].name, std::move(result));
  }
  return results;
}

}  // namespace tc::interp
