#pragma once

#include <string>
#include <string_view>

#include "tc/api/explain.h"

/// Parts of the page that shows an explanation: HTML and SVG as text. Colours are variables of the page's style.
namespace tc::api {

/// A text with &, <, > and quotes as HTML writes them.
std::string escaped(std::string_view text);

/// The text of the program with spans of the classes "keyword", "type", "number" and "comment", a line each of a class
/// "line"; lines where a statement begins have its id, in its kernel's colour.
std::string coloured_source(const Explanation& explanation);

/// Generated code with the same classes; `language` is that of an Explanation.
std::string coloured_code(std::string_view code, std::string_view language);

/// The class of a kernel's colour.
std::string kernel_class(std::size_t number);

/// Statements in frames of their kernels, and an edge of its rung's class for each value that passes between two.
std::string graph_svg(const Explanation& explanation);

/// A tiling's levels side by side: each divides one tile of the level before, to scale.
std::string tiles_html(const Explanation::Tiling& tiling);

/// Times of measurements in their order, by factors, and the best so far.
std::string history_svg(const std::vector<Explanation::Measurement>& measurements);

}  // namespace tc::api
