#include "tc/cli/npy_header.h"

#include <charconv>
#include <optional>
#include <vector>

#include "tc/api/layout.h"
#include "tc/support/result.h"

namespace tc::cli {
namespace {

/// A reader of the few Python literals that a header is made of. Every method returns false when the text has
/// something else, and remembers what was expected.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  bool symbol(char c) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return expect(std::string("'") + c + "'");
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size() || expect("nothing more");
  }
  bool string(std::string& value) {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return expect("a string");
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return expect("a string that ends");
    value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool boolean(bool& value) {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        value = word == "True";
        at_ += word.size();
        return true;
      }
    }
    return expect("True or False");
  }
  /// (), (3,), (3, 4): also with Python 2's 3L.
  bool tuple(std::vector<int64_t>& values) {
    if (!symbol('(')) return false;
    while (!peek(')')) {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error == std::errc::result_out_of_range) return expect("an extent that fits 64 bits");
      if (error != std::errc() || value < 0) return expect("an extent");
      at_ = static_cast<size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;
      values.push_back(value);
      if (!peek(')') && !symbol(',')) return false;
    }
    return symbol(')');
  }

  size_t at() const { return at_; }
  const std::string& expected() const { return expected_; }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool expect(std::string what) {
    expected_ = std::move(what);
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string expected_;
};

struct Fields {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

/// The dictionary; false where Literals says what was expected.
bool read_fields(Literals& in, Fields& fields) {
  if (!in.symbol('{')) return false;
  while (!in.peek('}')) {
    std::string key;
    if (!in.string(key) || !in.symbol(':')) return false;
    bool good = false;
    if (key == "descr") {
      good = in.string(fields.descr.emplace());
    } else if (key == "fortran_order") {
      good = in.boolean(fields.fortran_order.emplace());
    } else if (key == "shape") {
      good = in.tuple(fields.shape.emplace());
    }
    if (!good || (!in.peek('}') && !in.symbol(','))) return false;
  }
  return in.symbol('}') && in.at_end();
}

std::optional<ScalarType> type_of_descr(std::string_view descr) {
  const std::string_view code = descr.substr(descr.empty() || std::isalpha(descr[0]) ? 0 : 1);
  struct Row {
    std::string_view code;
    ScalarType type;
  };
  constexpr Row kRows[] = {
      {"b1", ScalarType::kBool},     {"i1", ScalarType::kInt8},       {"i2", ScalarType::kInt16},
      {"i4", ScalarType::kInt32},    {"i8", ScalarType::kInt64},      {"u1", ScalarType::kUInt8},
      {"u2", ScalarType::kUInt16},   {"u4", ScalarType::kUInt32},     {"u8", ScalarType::kUInt64},
      {"f2", ScalarType::kFloat16},  {"f4", ScalarType::kFloat32},    {"f8", ScalarType::kFloat64},
      {"V2", ScalarType::kBFloat16}, {"V1", ScalarType::kFloat8E4M3}, {"f1", ScalarType::kFloat8E5M2}};
  for (const Row& row : kRows) {
    if (row.code == code) return row.type;
  }
  return std::nullopt;
}

std::vector<int64_t> fortran_strides(const std::vector<int64_t>& shape) {
  const std::vector<int64_t> reversed(shape.rbegin(), shape.rend());
  const std::vector<int64_t> strides = api::dense_strides(reversed);
  return {strides.rbegin(), strides.rend()};
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text, const std::string& path) {
  Literals in(text);
  Fields fields;
  if (!read_fields(in, fields)) {
    const std::string expected = in.expected().empty() ? "the key 'descr', 'fortran_order' or 'shape'" : in.expected();
    return fail("the header of '{}' is malformed at byte {}: expected {}", path, in.at(), expected);
  }
  if (!fields.descr) return fail("the header of '{}' lacks 'descr'", path);
  if (!fields.fortran_order) return fail("the header of '{}' lacks 'fortran_order'", path);
  if (!fields.shape) return fail("the header of '{}' lacks 'shape'", path);
  const std::optional<ScalarType> type = type_of_descr(*fields.descr);
  if (!type)
    return fail("'{}' holds elements of NumPy's type '{}', which the language does not have", path, *fields.descr);

  NpyHeader header;
  header.spec = {.type = *type, .shape = *fields.shape};
  header.big_endian = fields.descr->starts_with(">") && bytes_of(*type) > 1;
  if (header.spec.span_bytes() < 0) {
    return fail("'{}' claims the shape {}, which has more bytes than 64 bits can count", path,
                api::tuple_text(header.spec.shape));
  }
  if (*fields.fortran_order && header.spec.shape.size() > 1) {
    header.spec.strides = fortran_strides(header.spec.shape);
  }
  return header;
}

}  // namespace tc::cli
