# Writes OUTPUT, which says the version of the compiler: VERSION and a digest
# of all the FILES (a list in a file) that decide what it makes of a program.
file(STRINGS "${FILES}" files)
set(all "")
foreach(name IN LISTS files)
  file(SHA256 "${SOURCE_DIR}/${name}" digest)
  string(APPEND all "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING "${digest}" 0 12 digest)
file(WRITE "${OUTPUT}" "#include \"tc/cache/version.h\"\n
const char* tc::cache::compiler_version() { return \"${VERSION}-${digest}\"; }\n")
