#include "tc/tune/space.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "tc/options/to_proto.h"
#include "tc/support/result.h"

namespace tc::tune {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

/// The message that `text` is, checked.
Result<std::unique_ptr<Message>> read(options::Backend backend, const std::string& text) {
  if (backend == options::Backend::kCpu) {
    TC_TRY(options, options::cpu_options_from_text(text));
    return std::make_unique<proto::CpuOptions>(options::to_proto(options));
  }
  TC_TRY(options, options::mapping_options_from_text(text));
  return std::make_unique<proto::MappingOptions>(options::to_proto(options));
}

/// Options of kernels in order of their addresses, without those that say nothing: so one candidate has one text.
void put_in_order(std::vector<options::KernelOptions>& kernels) {
  std::erase_if(kernels, [](const options::KernelOptions& kernel) {
    return kernel == options::KernelOptions{.writes = kernel.writes, .occurrence = kernel.occurrence};
  });
  std::ranges::stable_sort(kernels, {}, [](const auto& kernel) { return std::pair(kernel.writes, kernel.occurrence); });
}

std::string write(const Message& message) {
  if (const auto* cpu = dynamic_cast<const proto::CpuOptions*>(&message)) {
    return options::to_text(options::from_proto(*cpu));
  }
  options::MappingOptions options = options::from_proto(dynamic_cast<const proto::MappingOptions&>(message));
  put_in_order(options.kernel);
  return options::to_text(options);
}

struct Place {
  Message* message;
  const FieldDescriptor* field;
};

/// The message of the kernel "H" or "H 2" in MappingOptions; a new one if there is none.
proto::KernelOptions* kernel_in(proto::MappingOptions& options, const std::string& address) {
  const size_t space = address.find(' ');
  const std::string writes = address.substr(0, space);
  const int64_t occurrence = space == std::string::npos ? 0 : std::strtoll(address.c_str() + space, nullptr, 10);
  for (proto::KernelOptions& kernel : *options.mutable_kernel()) {
    if (kernel.writes() == writes && kernel.occurrence() == occurrence) return &kernel;
  }
  proto::KernelOptions* kernel = options.add_kernel();
  kernel->set_writes(writes);
  if (occurrence > 0) kernel->set_occurrence(occurrence);
  return kernel;
}

/// Where the last name of a path lives.
Result<Place> find(Message& message, const std::string& path) {
  Message* at = &message;
  size_t begin = 0;
  constexpr std::string_view kKernel = "kernel[";
  if (auto* mapping = dynamic_cast<proto::MappingOptions*>(&message); mapping && path.starts_with(kKernel)) {
    const size_t end = std::min(path.find("]."), path.size());
    at = kernel_in(*mapping, path.substr(kKernel.size(), end - kKernel.size()));
    begin = std::min(end + 2, path.size());
  }
  while (true) {
    const size_t dot = path.find('.', begin);
    const FieldDescriptor* field = at->GetDescriptor()->FindFieldByName(path.substr(begin, dot - begin));
    const bool is_last = dot == std::string::npos;
    if (!field || (field->is_repeated() && field->message_type()) ||
        is_last == (field->type() == FieldDescriptor::TYPE_MESSAGE)) {
      return fail("'{}' is no tunable field of {}", path, message.GetDescriptor()->name());
    }
    if (is_last) return Place{at, field};
    at = at->GetReflection()->MutableMessage(at, field);
    begin = dot + 1;
  }
}

/// Which element of its repeated field each parameter is.
std::vector<int> elements_of(const std::vector<Parameter>& parameters) {
  std::map<std::string, int> next;
  std::vector<int> result;
  for (const Parameter& parameter : parameters) result.push_back(next[parameter.field]++);
  return result;
}

/// All of a repeated field: "[64, 32]"; "" if it is absent.
std::string list_at(const Place& place) {
  const int size = place.message->GetReflection()->FieldSize(*place.message, place.field);
  std::string text;
  for (int i = 0; i < size; ++i) {
    std::string element;
    TextFormat::PrintFieldValueToString(*place.message, place.field, i, &element);
    text += (i > 0 ? ", " : "") + element;
  }
  return text.empty() ? text : "[" + text + "]";
}

/// Sets a field, or adds to a repeated one: one element, or those of a list.
bool set_at(const Place& place, const std::string& value) {
  if (!value.starts_with('[')) return TextFormat::ParseFieldValueFromString(value, place.field, place.message);
  if (!place.field->is_repeated() || !value.ends_with(']')) return false;
  for (size_t begin = 1; begin < value.size();) {
    const size_t end = value.find_first_of(",]", begin);
    if (!TextFormat::ParseFieldValueFromString(value.substr(begin, end - begin), place.field, place.message)) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

/// The value of a field as text; "" if it is absent.
std::string value_at(const Place& place, int element) {
  const auto* reflection = place.message->GetReflection();
  std::string text;
  if (place.field->is_repeated()) {
    if (element >= reflection->FieldSize(*place.message, place.field)) return text;
    TextFormat::PrintFieldValueToString(*place.message, place.field, element, &text);
  } else if (reflection->HasField(*place.message, place.field)) {
    TextFormat::PrintFieldValueToString(*place.message, place.field, -1, &text);
  }
  return text;
}

}  // namespace

bool Parameter::is_list() const {
  return std::ranges::any_of(values, [](const std::string& value) { return value.starts_with('['); });
}

double Space::size() const {
  double points = 1;
  for (const Parameter& parameter : parameters) points *= static_cast<double>(parameter.values.size());
  return points;
}

Result<std::string> text_of(const Space& space, const Candidate& candidate) {
  TC_TRY(message, read(space.backend, space.base));
  const std::vector<int> elements = elements_of(space.parameters);
  for (size_t p = 0; p < space.parameters.size(); ++p) {
    const Parameter& parameter = space.parameters[p];
    const std::string& value = parameter.values.at(candidate.at(p));
    if (value.empty()) continue;
    TC_TRY(place, find(*message, parameter.field));
    if (place.field->is_repeated() &&
        place.message->GetReflection()->FieldSize(*place.message, place.field) < elements[p]) {
      continue;
    }
    if (!set_at(place, value)) {
      return fail("'{}' cannot be {}", parameter.field, value);
    }
  }
  return write(*message);
}

Result<Candidate> candidate_of(Space& space, const std::string& text) {
  TC_TRY(message, read(space.backend, text));
  const std::vector<int> elements = elements_of(space.parameters);
  Candidate candidate;
  for (size_t p = 0; p < space.parameters.size(); ++p) {
    Parameter& parameter = space.parameters[p];
    TC_TRY(place, find(*message, parameter.field));
    const bool is_free = parameter.values.size() == 1 && place.field->is_repeated();  // texts give it whole lists
    const std::string value = parameter.is_list() || is_free ? list_at(place) : value_at(place, elements[p]);
    auto found = std::ranges::find(parameter.values, value);
    if (found == parameter.values.end()) found = parameter.values.insert(found, value);
    candidate.push_back(static_cast<uint16_t>(found - parameter.values.begin()));
  }
  TC_TRY(back, text_of(space, candidate));
  const std::string meant = write(*message);
  if (back != meant) return fail("options that the space does not hold:\n{}", meant);
  return candidate;
}

Result<std::string> value_in(options::Backend backend, const std::string& text, const std::string& field) {
  TC_TRY(message, read(backend, text));
  TC_TRY(place, find(*message, field));
  return place.field->is_repeated() ? list_at(place) : value_at(place, 0);
}

Candidate first_candidate(const Space& space) { return Candidate(space.parameters.size(), 0); }

}  // namespace tc::tune
