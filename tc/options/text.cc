#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "tc/options/to_proto.h"
#include "tc/options/validate.h"
#include "tc/support/nearest.h"
#include "tc/support/result.h"

namespace tc::options {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

/// The byte of a place as protobuf counts it: from 0, with tabs reaching to the next multiple of 8.
SourceRange range_at(const Source& source, int line, int column) {
  if (line < 0) return {0, 0};
  const std::string_view text = source.text();
  size_t at = 0;
  for (int i = 0; i < line; ++i) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  for (int reached = 0; reached < column && at < text.size() && text[at] != '\n'; ++at) {
    reached += text[at] == '\t' ? 8 - reached % 8 : 1;
  }
  size_t end = at;
  const auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  while (end < text.size() && is_word(text[end])) ++end;
  return {static_cast<uint32_t>(at), static_cast<uint32_t>(std::max(end, std::min(at + 1, text.size())))};
}

std::vector<std::string> field_names(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

/// Where `word` stands, if it is what precedes a place: protobuf reports some errors one token late.
SourceRange back_to(const Source& source, SourceRange range, const std::string& word) {
  const std::string_view before = source.text().substr(0, range.begin);
  const size_t at = before.rfind(word);
  if (word.empty() || at == std::string_view::npos) return range;
  const size_t end = at + word.size();
  if (before.substr(end).find_first_not_of(" \t\r\n:]") != std::string_view::npos) return range;
  return {static_cast<uint32_t>(at), static_cast<uint32_t>(end)};
}

/// The text between the quotation mark at or after `from` and the next one.
std::string quoted(const std::string& message, size_t from = 0) {
  const size_t begin = message.find('"', from);
  if (begin == std::string::npos) return {};
  const size_t end = message.find('"', begin + 1);
  return message.substr(begin + 1, end - begin - 1);
}

/// What differs between the kinds of options.
struct Kind {
  const Descriptor& message;
  const char* whose;
};

Kind kind_of(const proto::CpuOptions&) { return {*proto::CpuOptions::descriptor(), "of the CPU"}; }
Kind kind_of(const proto::MappingOptions&) { return {*proto::MappingOptions::descriptor(), "of the mapping"}; }

/// The fields of a message that hold a scheduler's options.
std::vector<const FieldDescriptor*> schedulers_of(const Descriptor& message) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->message_type() == proto::SchedulerOptions::descriptor()) fields.push_back(message.field(i));
  }
  return fields;
}

/// Collects protobuf's errors as diagnostics in our words.
class Collector : public google::protobuf::io::ErrorCollector {
 public:
  Collector(SourcePtr source, const Kind& kind) : source_(std::move(source)), kind_(kind) {}

  void AddError(int line, int column, const std::string& message) override {
    const SourceRange range = range_at(*source_, line, column);
    if (message.find("has no field named") != std::string::npos) {
      const std::string name = quoted(message, message.find("named"));
      diagnostics_.push_back({back_to(*source_, range, name), unknown_field(quoted(message), name), {}});
    } else if (message.starts_with("Unknown enumeration value")) {
      const std::string name = quoted(message);
      diagnostics_.push_back({back_to(*source_, range, name),
                              fmt::format("there is no fusion strategy '{}'; there are MAX, PRESERVE_3_COINCIDENT "
                                          "and MIN",
                                          name),
                              {}});
    } else if (diagnostics_.empty()) {  // what protobuf says after an error only repeats it
      diagnostics_.push_back({range, as_our_sentence(message), {}});
    }
  }

  std::vector<Diagnostic> take() { return std::move(diagnostics_); }

 private:
  std::string unknown_field(const std::string& message_type, const std::string& name) const {
    const bool in_scheduler = message_type == proto::SchedulerOptions::descriptor()->full_name();
    const bool in_kernel = message_type == proto::KernelOptions::descriptor()->full_name();
    const std::vector<std::string> names = field_names(in_scheduler ? *proto::SchedulerOptions::descriptor()
                                                       : in_kernel  ? *proto::KernelOptions::descriptor()
                                                                    : kind_.message);
    const std::string meant = nearest(name, names);
    const std::string where = in_scheduler ? "of the scheduler" : in_kernel ? "of a kernel" : kind_.whose;
    if (!meant.empty()) return fmt::format("there is no option '{}' {}; did you mean '{}'?", name, where, meant);
    return fmt::format("there is no option '{}' {}; there are {}", name, where, fmt::join(names, ", "));
  }

  /// Lower case, no full stop, and a name for the end of the text.
  static std::string as_our_sentence(std::string message) {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
    if (message.ends_with(".")) message.pop_back();
    for (const std::string_view end : {"got: ", "found \"\""}) {
      if (message.ends_with(end)) {
        message.resize(message.size() - end.size());
        message += "found the end of the text";
      }
    }
    return message;
  }

  SourcePtr source_;
  const Kind& kind_;
  std::vector<Diagnostic> diagnostics_;
};

/// Faults of a message; a field of a scheduler's options is named "outer_schedule_options.fusion_strategy".
template <typename Message>
std::vector<Fault> faults_of_message(const Message& message) {
  std::vector<Fault> faults;
  for (const FieldDescriptor* field : schedulers_of(*Message::descriptor())) {
    const google::protobuf::Message& held = Message::GetReflection()->GetMessage(message, field);
    const int fusion = dynamic_cast<const proto::SchedulerOptions&>(held).fusion_strategy();
    if (proto::FusionStrategy_IsValid(fusion)) continue;
    faults.push_back({field->name() + ".fusion_strategy", 0,
                      fmt::format("'fusion_strategy' is {}; it must be MAX, PRESERVE_3_COINCIDENT or MIN", fusion)});
  }
  for (Fault& fault : faults_of(from_proto(message))) faults.push_back(std::move(fault));
  return faults;
}

/// Where a field of the options or of a scheduler's stands in the text.
SourceRange place_of(const Fault& fault, const Source& source, const TextFormat::ParseInfoTree& tree,
                     const Descriptor& message) {
  const size_t dot = fault.field.find('.');
  const TextFormat::ParseInfoTree* holder = &tree;
  const FieldDescriptor* field = message.FindFieldByName(fault.field.substr(0, dot));
  if (fault.kernel >= 0) {
    const FieldDescriptor* kernels = message.FindFieldByName("kernel");
    if (fault.field == "kernel") {
      const TextFormat::ParseLocation at = tree.GetLocation(kernels, fault.kernel);
      return range_at(source, at.line, at.column);
    }
    holder = tree.GetTreeForNested(kernels, fault.kernel);
    field = kernels->message_type()->FindFieldByName(fault.field);
  }
  if (dot != std::string::npos) {
    holder = tree.GetTreeForNested(field, -1);
    field = field->message_type()->FindFieldByName(fault.field.substr(dot + 1));
  }
  TextFormat::ParseLocation at = holder->GetLocation(field, field->is_repeated() ? fault.index : -1);
  if (at.line < 0 && fault.kernel >= 0 && field->is_repeated())
    at = holder->GetLocation(field, 0);  // of a list in brackets
  return range_at(source, at.line, at.column);
}

template <typename Message>
std::string text_of(const Message& message) {
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

/// Reads and checks a message.
template <typename Message>
Result<Message> message_from(const std::string& text, const std::string& name) {
  constexpr size_t kLongestText = 1 << 20;
  if (text.size() > kLongestText) {
    return tl::unexpected(
        Error(fmt::format("{} has {} bytes; options have at most {}", name, text.size(), kLongestText)));
  }
  const auto source = std::make_shared<const Source>(name, text);
  Message message;
  const Kind kind = kind_of(message);
  Collector collector(source, kind);
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(8);
  if (!parser.ParseFromString(text, &message)) return tl::unexpected(Error(source, collector.take()));

  std::vector<Diagnostic> diagnostics;
  for (Fault& fault : faults_of_message(message)) {
    diagnostics.push_back({place_of(fault, *source, tree, kind.message), std::move(fault.sentence), {}});
  }
  std::ranges::stable_sort(diagnostics, {}, [](const Diagnostic& d) { return d.range->begin; });
  if (!diagnostics.empty()) return tl::unexpected(Error(source, std::move(diagnostics)));
  return message;
}

}  // namespace

std::string to_text(const CpuOptions& options) { return text_of(to_proto(options)); }

std::string to_text(const MappingOptions& options) { return text_of(to_proto(options)); }

Result<CpuOptions> cpu_options_from_text(const std::string& text, const std::string& name) {
  TC_TRY(message, message_from<proto::CpuOptions>(text, name));
  return from_proto(message);
}

Result<MappingOptions> mapping_options_from_text(const std::string& text, const std::string& name) {
  TC_TRY(message, message_from<proto::MappingOptions>(text, name));
  return from_proto(message);
}

}  // namespace tc::options
