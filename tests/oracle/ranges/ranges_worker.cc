// Answers with the ranges and extents that the compiler infers, for many defs and many sizes in one process.
// Requests, one a line, on standard input; each is answered by one line, of fields between tabs:
//
//     def NAME BYTES                 and then BYTES bytes of text       ok, or error and the sentence
//     at N=9,M=3 dil=2,p=1           sizes, then scalars ("-" for none) ok and what follows, or error and the sentence
//
// After "ok": a field "S TENSOR i=0:9 k=0:3" for each statement of the specialised Program, in its order, and a field
// "E TENSOR 9 3" for each tensor.
#include <fmt/format.h>

#include <iostream>
#include <sstream>
#include <string>

#include "tc/compile/pipeline.h"
#include "tc/ir/index_expr.h"
#include "tc/support/check.h"

namespace {

using namespace tc;

/// An error on one line: the sentence, and what it suggests.
std::string line_of(const Error& error) {
  std::string text = error.diagnostics()[0].message;
  for (const Note& note : error.diagnostics()[0].notes) text += " // " + note.text;
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return "error\t" + text;
}

std::map<std::string, int64_t> numbers_of(const std::string& text) {
  std::map<std::string, int64_t> result;
  std::istringstream in(text);
  for (std::string pair; std::getline(in, pair, ',');) {
    const size_t equals = pair.find('=');
    if (equals != std::string::npos) result[pair.substr(0, equals)] = std::stoll(pair.substr(equals + 1));
  }
  return result;
}

std::string number(const Halide::Expr& e) {
  const auto value = ir::constant_value(e);
  return value ? std::to_string(*value) : "?";
}

std::string describe(const ir::Program& program) {
  std::string text = "ok";
  for (const ir::Statement& statement : program.statements) {
    text += "\tS " + statement.tensor;
    for (const ir::Index& i : statement.indices) {
      text += fmt::format(" {}={}:{}", i.name, number(i.begin), number(i.end));
    }
  }
  for (const ir::Tensor& tensor : program.tensors) {
    text += "\tE " + tensor.name;
    for (const Halide::Expr& e : tensor.extents) text += " " + number(e);
  }
  return text;
}

/// Runs the passes up to `last`; a fault of the compiler's is an answer too.
std::string run(const compile::Settings& settings, compile::Compilation& compilation, const char* last) {
  try {
    const Result<void> done = compile::run_passes(settings, compilation, last);
    return done ? "" : line_of(done.error());
  } catch (const InternalError& fault) {
    std::string text = fault.what();
    return "fault\t" + text.substr(0, text.find('\n'));
  }
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  compile::Settings settings;
  settings.budget.wall_clock_ms = 20000;
  compile::Compilation analysed;
  std::map<std::string, std::pair<std::string, compile::Compilation>> programs;  // by scalars: what went wrong, or not
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string verb, first, second, answer;
    in >> verb >> first >> second;
    if (verb == "def") {
      std::string text(std::stoul(second), '\0');
      std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
      analysed = compile::Compilation();
      analysed.source = std::make_shared<const Source>("text", std::move(text));
      settings.entry = first;
      programs.clear();
      answer = run(settings, analysed, "analyse");
      if (answer.empty()) answer = "ok";
    } else {
      settings.given.sizes.clear();
      settings.given.scalars = numbers_of(second);
      auto [known, is_new] = programs.try_emplace(second, "", analysed);
      auto& [wrong, program] = known->second;
      if (is_new) wrong = run(settings, program, "program");
      compile::Compilation compilation = program;
      settings.given.sizes = numbers_of(first);
      answer = wrong.empty() ? run(settings, compilation, "specialise") : wrong;
      if (answer.empty()) answer = describe(*compilation.specialised);
    }
    std::cout << answer << std::endl;
  }
}
