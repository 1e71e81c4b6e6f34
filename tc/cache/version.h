#pragma once

namespace tc::cache {

/// "0.1.0-5f0c2a9b1e37": the library's version, and a digest of the sources of all layers up to the pipeline. Compilers
/// of one version make the same code of the same program.
const char* compiler_version();

}  // namespace tc::cache
