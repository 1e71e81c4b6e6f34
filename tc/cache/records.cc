#include "tc/cache/records.h"

#include <algorithm>

#include "proto/cache.pb.h"

namespace tc::cache {
namespace {

/// Of the messages; a later number means that a reader of this one would misunderstand.
constexpr uint32_t kSchema = 1;
/// Of entries whose kernels take tensor maps or run in clusters.
constexpr uint32_t kMapSchema = 2;

template <typename Enum>
std::optional<Enum> enumerator(int value, Enum last) {
  if (value < 0 || value > static_cast<int>(last)) return std::nullopt;
  return static_cast<Enum>(value);
}

void set(proto::Problem& message, const Problem& problem) {
  message.set_program(problem.program);
  for (const int64_t size : problem.sizes) message.add_sizes(size);
  for (const int64_t scalar : problem.scalars) message.add_scalars(scalar);
  for (const Strided& one : problem.strided) {
    proto::Strided& strided = *message.add_strided();
    strided.set_argument(one.argument);
    for (const int64_t stride : one.strides) strided.add_strides(stride);
  }
  message.set_strict(problem.strict);
  message.set_check_bounds(problem.check_bounds);
  message.set_tf32(problem.tf32);
  message.set_fast_accumulation(problem.fast_accumulation);
  message.set_element_aligned(problem.element_aligned);
  message.set_backend(static_cast<int>(problem.backend));
  message.set_target(problem.target);
}

std::optional<Problem> get(const proto::Problem& message) {
  const auto backend = enumerator(message.backend(), Backend::kSimulator);
  if (!backend) return std::nullopt;
  Problem problem;
  problem.program = message.program();
  problem.sizes.assign(message.sizes().begin(), message.sizes().end());
  problem.scalars.assign(message.scalars().begin(), message.scalars().end());
  for (const proto::Strided& one : message.strided()) {
    problem.strided.push_back({one.argument(), {one.strides().begin(), one.strides().end()}});
  }
  problem.strict = message.strict();
  problem.check_bounds = message.check_bounds();
  problem.tf32 = message.tf32();
  problem.fast_accumulation = message.fast_accumulation();
  problem.element_aligned = message.element_aligned();
  problem.backend = *backend;
  problem.target = message.target();
  return problem;
}

void set(proto::Slot& message, const Slot& slot) {
  message.set_kind(static_cast<int>(slot.kind));
  message.set_index(slot.index);
}

std::optional<Slot> get(const proto::Slot& message) {
  const auto kind = enumerator(message.kind(), Slot::Kind::kFault);
  if (!kind || message.index() < 0) return std::nullopt;
  return Slot{*kind, message.index()};
}

void set(proto::CpuCode& message, const CpuCode& code) {
  message.set_symbol(code.symbol);
  message.set_target(code.target);
  message.set_object(code.object);
}

void set(proto::BoundsCheck& message, const Check& check) {
  message.set_dimension(check.dimension);
  message.set_extent(check.extent);
  message.set_statement(check.statement);
  message.set_tensor(check.tensor);
  message.set_type(static_cast<int>(check.type));
  message.set_found(check.found);
}

std::optional<Check> get(const proto::BoundsCheck& message) {
  const auto type = enumerator(message.type(), ScalarType::kFloat64);
  if (!type || !is_integer(*type)) return std::nullopt;
  return Check{.dimension = message.dimension(),
               .extent = message.extent(),
               .statement = message.statement(),
               .tensor = message.tensor(),
               .type = *type,
               .found = message.found()};
}

uint32_t schema_of(const cuda::LaunchPlan& plan) {
  const bool in_clusters = std::ranges::any_of(plan.kernels, &cuda::KernelLaunch::in_clusters);
  return in_clusters || !plan.maps.empty() ? kMapSchema : kSchema;
}

void set(proto::LaunchPlan::Argument& message, const cuda::KernelArgument& argument) {
  message.set_kind(static_cast<int>(argument.kind));
  message.set_index(argument.index);
}

/// Nothing where its index is not within the plan's list.
std::optional<cuda::KernelArgument> get(const proto::LaunchPlan::Argument& message, const cuda::LaunchPlan& plan) {
  using Kind = cuda::KernelArgument::Kind;
  const auto kind = enumerator(message.kind(), Kind::kMap);
  if (!kind) return std::nullopt;
  const size_t count = *kind == Kind::kTensor      ? plan.tensors.size()
                       : *kind == Kind::kWorkspace ? plan.workspace.size()
                       : *kind == Kind::kScalar    ? plan.scalars.size()
                                                   : plan.maps.size();
  if (message.index() < 0 || static_cast<size_t>(message.index()) >= count) return std::nullopt;
  return cuda::KernelArgument{*kind, message.index()};
}

void set(proto::LaunchPlan::Map& message, const cuda::MapArgument& map) {
  set(*message.mutable_of(), map.of);
  message.set_byte_offset(map.byte_offset);
  message.set_type(map.type);
  for (const int64_t extent : map.extents) message.add_extents(extent);
  for (const int64_t stride : map.byte_strides) message.add_byte_strides(stride);
  for (const int64_t extent : map.box) message.add_box(extent);
  message.set_swizzle(map.swizzle);
}

std::optional<cuda::MapArgument> get(const proto::LaunchPlan::Map& message, const cuda::LaunchPlan& plan) {
  using Kind = cuda::KernelArgument::Kind;
  const auto of = get(message.of(), plan);
  const int rank = message.extents_size();
  if (!of || (of->kind != Kind::kTensor && of->kind != Kind::kWorkspace)) return std::nullopt;
  if (rank < 1 || rank > cuda::kMaxMapRank) return std::nullopt;
  if (message.byte_strides_size() != rank - 1 || message.box_size() != rank) return std::nullopt;
  return cuda::MapArgument{.of = *of,
                           .byte_offset = message.byte_offset(),
                           .type = message.type(),
                           .extents = {message.extents().begin(), message.extents().end()},
                           .byte_strides = {message.byte_strides().begin(), message.byte_strides().end()},
                           .box = {message.box().begin(), message.box().end()},
                           .swizzle = message.swizzle()};
}

void set(proto::LaunchPlan& message, const cuda::LaunchPlan& plan) {
  for (const cuda::TensorArgument& tensor : plan.tensors) {
    proto::LaunchPlan::Tensor& to = *message.add_tensors();
    to.set_bytes(tensor.bytes);
    to.set_alignment(tensor.alignment);
    to.set_written(tensor.written);
  }
  for (const cuda::ScalarArgument& scalar : plan.scalars) message.add_scalar_bytes(scalar.bytes);
  for (const cuda::WorkspaceBuffer& buffer : plan.workspace) {
    proto::LaunchPlan::Buffer& to = *message.add_workspace();
    to.set_name(buffer.name);
    to.set_byte_offset(buffer.byte_offset);
    to.set_bytes(buffer.bytes);
  }
  for (const cuda::MapArgument& map : plan.maps) set(*message.add_maps(), map);
  for (const cuda::KernelLaunch& launch : plan.kernels) {
    proto::LaunchPlan::Launch& to = *message.add_launches();
    to.set_symbol(launch.symbol);
    for (const int64_t extent : launch.grid) to.add_grid(extent);
    for (const int64_t extent : launch.block) to.add_block(extent);
    to.set_dynamic_shared_bytes(launch.dynamic_shared_bytes);
    to.set_waits(launch.waits);
    if (launch.in_clusters()) {
      for (const int64_t extent : launch.cluster) to.add_cluster(extent);
    }
    for (const cuda::KernelArgument& argument : launch.arguments) set(*to.add_arguments(), argument);
  }
}

/// Every index of the plan is within its list: what launches relies on it.
bool get(const proto::LaunchPlan::Launch& message, const cuda::LaunchPlan& plan, cuda::KernelLaunch& launch) {
  if (message.grid_size() != 3 || message.block_size() != 3) return false;
  launch.symbol = message.symbol();
  for (int d = 0; d < 3; ++d) launch.grid[d] = message.grid(d), launch.block[d] = message.block(d);
  launch.dynamic_shared_bytes = message.dynamic_shared_bytes();
  launch.waits = message.waits();
  if (message.cluster_size() != 0 && message.cluster_size() != 3) return false;
  for (int d = 0; d < message.cluster_size(); ++d) launch.cluster[d] = message.cluster(d);
  for (const proto::LaunchPlan::Argument& argument : message.arguments()) {
    const auto read = get(argument, plan);
    if (!read) return false;
    launch.arguments.push_back(*read);
  }
  return true;
}

bool get(const proto::LaunchPlan& message, cuda::LaunchPlan& plan) {
  for (const proto::LaunchPlan::Tensor& tensor : message.tensors()) {
    if (tensor.alignment() < 1 || tensor.bytes() < 0) return false;
    plan.tensors.push_back({"", tensor.bytes(), tensor.alignment(), tensor.written()});
  }
  for (const int bytes : message.scalar_bytes()) plan.scalars.push_back({"", bytes});
  for (const proto::LaunchPlan::Buffer& buffer : message.workspace()) {
    plan.workspace.push_back({buffer.name(), buffer.byte_offset(), buffer.bytes()});
  }
  for (const proto::LaunchPlan::Map& map : message.maps()) {
    auto read = get(map, plan);
    if (!read) return false;
    plan.maps.push_back(std::move(*read));
  }
  for (const proto::LaunchPlan::Launch& launch : message.launches()) {
    if (!get(launch, plan, plan.kernels.emplace_back())) return false;
  }
  return true;
}

/// Serialisation into a string only fails beyond 2 GiB, which no kernel reaches.
template <typename Message>
std::string bytes_of(const Message& message) {
  return message.SerializeAsString();
}

template <typename Message>
bool parse(Message& message, const std::string& bytes, uint32_t newest = kSchema) {
  return message.ParseFromString(bytes) && message.schema() >= kSchema && message.schema() <= newest;
}

void set(proto::Certificate& message, const Certificate& certificate) {
  message.set_origin(static_cast<int>(certificate.origin));
  message.set_compiler(certificate.compiler);
  message.set_proved_text(certificate.proved_text);
  message.set_statement(certificate.statement);
}

}  // namespace

std::string to_bytes(const Key& key, const Entry& entry) {
  proto::CacheEntry message;
  message.set_schema(schema_of(entry.gpu.plan));
  set(*message.mutable_key()->mutable_problem(), key.problem);
  message.mutable_key()->set_options(key.options);
  message.mutable_key()->set_machine(key.machine);
  message.mutable_key()->set_compiler(key.compiler);
  for (const Slot& slot : entry.slots) set(*message.add_slots(), slot);
  if (key.problem.backend == Backend::kCpu) set(*message.mutable_cpu(), entry.cpu);
  if (key.problem.backend == Backend::kCuda) {
    proto::GpuCode& code = *message.mutable_gpu();
    code.set_arch(entry.gpu.arch);
    code.set_cubin(entry.gpu.cubin);
    for (const Cubin& other : entry.gpu.others) {
      proto::Cubin& to = *code.add_others();
      to.set_arch(other.arch);
      to.set_bytes(other.bytes);
    }
    set(*code.mutable_plan(), entry.gpu.plan);
    code.set_text(entry.gpu.text);
  }
  for (const Check& check : entry.checks) set(*message.add_checks(), check);
  set(*message.mutable_certificate(), entry.certificate);
  message.set_created(entry.created);
  return bytes_of(message);
}

std::optional<StoredEntry> entry_from(const std::string& bytes) {
  proto::CacheEntry message;
  if (!parse(message, bytes, kMapSchema)) return std::nullopt;
  const auto problem = get(message.key().problem());
  const auto origin = enumerator(message.certificate().origin(), Certificate::Origin::kHand);
  if (!problem || !origin) return std::nullopt;
  StoredEntry stored;
  stored.key = {*problem, message.key().options(), message.key().machine(), message.key().compiler()};
  Entry& entry = stored.entry;
  for (const proto::Slot& slot : message.slots()) {
    const auto read = get(slot);
    if (!read) return std::nullopt;
    entry.slots.push_back(*read);
  }
  for (const proto::BoundsCheck& check : message.checks()) {
    const auto read = get(check);
    if (!read) return std::nullopt;
    entry.checks.push_back(*read);
  }
  if (message.has_cpu()) {
    entry.cpu = {.symbol = message.cpu().symbol(), .target = message.cpu().target(), .object = message.cpu().object()};
  }
  if (message.has_gpu()) {
    entry.gpu.arch = message.gpu().arch();
    entry.gpu.cubin = message.gpu().cubin();
    entry.gpu.text = message.gpu().text();
    for (const proto::Cubin& other : message.gpu().others()) entry.gpu.others.push_back({other.arch(), other.bytes()});
    if (!get(message.gpu().plan(), entry.gpu.plan)) return std::nullopt;
    if (entry.slots.size() != entry.gpu.plan.tensors.size() + entry.gpu.plan.scalars.size()) return std::nullopt;
  }
  entry.certificate = {*origin, message.certificate().compiler(), message.certificate().proved_text(),
                       message.certificate().statement()};
  entry.created = message.created();
  return stored;
}

std::string to_bytes(const Measurement& measurement) {
  proto::CacheMeasurement message;
  message.set_schema(kSchema);
  set(*message.mutable_problem(), measurement.problem);
  message.set_options(measurement.options);
  message.set_device(measurement.device);
  message.set_state(static_cast<int>(measurement.state));
  message.set_time_us(measurement.time_us);
  message.set_spread_us(measurement.spread_us);
  message.set_date(measurement.date);
  message.set_compiler(measurement.compiler);
  message.set_remark(measurement.remark);
  return bytes_of(message);
}

std::optional<Measurement> measurement_from(const std::string& bytes) {
  proto::CacheMeasurement message;
  if (!parse(message, bytes)) return std::nullopt;
  const auto problem = get(message.problem());
  const auto state = enumerator(message.state(), Measurement::State::kTooSlow);
  if (!problem || !state) return std::nullopt;
  return Measurement{.problem = *problem,
                     .options = message.options(),
                     .device = message.device(),
                     .state = *state,
                     .time_us = message.time_us(),
                     .spread_us = message.spread_us(),
                     .date = message.date(),
                     .compiler = message.compiler(),
                     .remark = message.remark()};
}

std::string to_bytes(const std::string& source_digest, const Interface& interface) {
  proto::CacheInterface message;
  message.set_schema(kSchema);
  message.set_source_digest(source_digest);
  message.set_entry(interface.entry);
  message.set_program(interface.program);
  message.set_text(interface.text);
  message.set_compiler(interface.compiler);
  for (const std::string& size : interface.sizes) message.add_sizes(size);
  for (const Interface::Tensor& tensor : interface.tensors) {
    proto::CacheInterface::Tensor& to = *message.add_tensors();
    to.set_name(tensor.name);
    to.set_type(std::string(name_of(tensor.type)));
    to.set_role(static_cast<int>(tensor.role));
    for (const ExtentText& extent : tensor.extents) to.add_extents(extent);
  }
  for (const Interface::Scalar& scalar : interface.scalars) {
    proto::CacheInterface::Scalar& to = *message.add_scalars();
    to.set_name(scalar.name);
    to.set_type(std::string(name_of(scalar.type)));
    to.set_compiled_in(scalar.compiled_in);
    if (scalar.value) to.set_value(*scalar.value);
  }
  for (const std::string& name : interface.parameters) message.add_parameters(name);
  for (const std::string& name : interface.results) message.add_results(name);
  message.set_without_run_time_checks(!interface.has_run_time_checks);
  return bytes_of(message);
}

std::optional<StoredInterface> interface_from(const std::string& bytes) {
  proto::CacheInterface message;
  if (!parse(message, bytes)) return std::nullopt;
  StoredInterface stored;
  stored.source_digest = message.source_digest();
  Interface& interface = stored.interface;
  interface.entry = message.entry();
  interface.program = message.program();
  interface.text = message.text();
  interface.compiler = message.compiler();
  interface.sizes.assign(message.sizes().begin(), message.sizes().end());
  for (const proto::CacheInterface::Tensor& tensor : message.tensors()) {
    const auto type = scalar_type_from_name(tensor.type());
    const auto role = enumerator(tensor.role(), Interface::Role::kInOut);
    if (!type || !role) return std::nullopt;
    interface.tensors.push_back({tensor.name(), *type, *role, {tensor.extents().begin(), tensor.extents().end()}});
  }
  for (const proto::CacheInterface::Scalar& scalar : message.scalars()) {
    const auto type = scalar_type_from_name(scalar.type());
    if (!type) return std::nullopt;
    interface.scalars.push_back({scalar.name(), *type, scalar.compiled_in(), {}});
    if (scalar.has_value()) interface.scalars.back().value = scalar.value();
  }
  interface.parameters.assign(message.parameters().begin(), message.parameters().end());
  interface.results.assign(message.results().begin(), message.results().end());
  interface.has_run_time_checks = !message.without_run_time_checks();
  return stored;
}

}  // namespace tc::cache
