#pragma once

#include <cstddef>
#include <cstdint>

/// What a program that XLA has compiled calls: XLA's foreign-function interface, version 0 of its binary interface, as
/// far as it is used here. Each struct begins with its size, and later versions add at the end; so JAX need not be
/// there when this is built.
namespace tc::python::xla {

struct Extension {
  size_t struct_size;
  int type;  ///< kMetadata
  Extension* next;
};
inline constexpr int kMetadata = 1;

struct ApiVersion {
  size_t struct_size;
  Extension* extensions;
  int major, minor;
};

/// What a handler says of itself, when it is registered.
struct Metadata {
  size_t struct_size;
  ApiVersion version;
  uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;    // XLA's own
struct Context;  // of one run

struct ErrorArguments {
  size_t struct_size;
  Extension* extensions;
  const char* message;
  int code;
};
inline constexpr int kInvalidArgument = 3;

struct StreamArguments {
  size_t struct_size;
  Extension* extensions;
  Context* context;
  void* stream;  ///< is set
};

struct Api {
  size_t struct_size;
  Extension* extensions;
  ApiVersion version;
  const void* internal;
  Error* (*create_error)(ErrorArguments*);
  void* get_error_message;
  void* destroy_error;
  void* register_handler;
  Error* (*get_stream)(StreamArguments*);
};

struct Buffer {
  size_t struct_size;
  Extension* extensions;
  int type;
  void* data;
  int64_t rank;
  int64_t* extents;
};

/// Arguments, or results.
struct Buffers {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  int* kinds;
  Buffer** buffers;
};

struct Text {
  const char* begin;
  size_t size;
};
struct Scalar {
  int type;  ///< kSigned64
  void* value;
};
inline constexpr int kScalarAttribute = 3;
inline constexpr int kSigned64 = 5;

struct Attributes {
  size_t struct_size;
  Extension* extensions;
  int64_t size;
  int* kinds;
  Text** names;
  void** values;
};

struct Call {
  size_t struct_size;
  Extension* extensions;
  const Api* api;
  Context* context;
  int stage;  ///< kExecute
  Buffers arguments, results;
  Attributes attributes;
};
inline constexpr int kExecute = 3;

}  // namespace tc::python::xla
