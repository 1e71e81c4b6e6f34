#include "tc/cache/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/cache/values.h"

namespace tc::cache::test {
namespace {

TEST(Key, NothingThatChangesAKernelIsMissing) {
  const Key key = key_of(1, "tile: 4");
  std::vector<Key> others(15, key);
  others[0].problem.program = Digest::of("another").to_string();
  others[1].problem.sizes = {1024, 33};
  others[2].problem.scalars = {8};
  others[3].problem.strided = {};
  others[4].problem.strided = {{0, {64, 2}}};
  others[5].problem.strict = true;
  others[6].problem.check_bounds = true;
  others[7].problem.backend = Backend::kCpu;
  others[8].problem.target = "sm_80";
  others[9].options = "tile: 5";
  others[10].machine = "114 processors";
  others[11].compiler = "2";
  others[12].problem.element_aligned = true;
  others[13].problem.tf32 = true;
  others[14].problem.fast_accumulation = true;
  std::set<std::string> digests = {digest_of(key).to_string()};
  for (const Key& other : others) digests.insert(digest_of(other).to_string());
  EXPECT_EQ(digests.size(), others.size() + 1);
}

TEST(Key, FieldsDoNotRunIntoEachOther) {
  Key a = key_of(0), b = key_of(0);
  a.options = "x\nmachine 1:y", a.machine = "";
  b.options = "x", b.machine = "y";
  EXPECT_NE(canonical_text(a), canonical_text(b));
}

TEST(Key, DistanceCountsDoublings) {
  EXPECT_EQ(distance(problem_of(0), problem_of(1)), 1);
  EXPECT_EQ(distance(problem_of(0), problem_of(3)), 2);
  EXPECT_EQ(distance(problem_of(3), problem_of(0)), 2);
  Problem other = problem_of(1);
  other.target = "sm_80";
  EXPECT_LT(distance(problem_of(0), other), 0);
}

TEST(Cache, KeepsWhatIsPut) {
  const Folder folder;
  const std::string path = folder.path("c");
  {
    auto cache = value_of(Cache::open(path));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(cache->put(key_of(i), entry_of(i)));
  }
  auto cache = value_of(Cache::open(path, {.mode = Mode::kReadOnly}));
  for (int i = 0; i < 20; ++i) {
    const auto found = value_of(cache->find(key_of(i)));
    ASSERT_TRUE(found);
    expect_equal(*found, entry_of(i));
    EXPECT_EQ(value_of(cache->keys(problem_of(i))), std::vector<Key>{key_of(i)});
  }
  EXPECT_FALSE(value_of(cache->find(key_of(20))));
  EXPECT_FALSE(value_of(cache->find(key_of(1, "tile: 4"))));
  EXPECT_EQ(value_of(cache->problems(problem_of(0).program)).size(), 20U);
  EXPECT_EQ(cache->put(key_of(21), entry_of(21)).error().to_string(),
            "error: the cache " + path + ": there is no right to write to it\n");
}

TEST(Cache, CpuEntries) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  Key key = key_of(0);
  key.problem.backend = Backend::kCpu;
  Entry entry;
  entry.slots = {{Slot::Kind::kOutput, 1}, {Slot::Kind::kFault, 0}};
  entry.cpu = {.symbol = "tc_f", .target = "x86-64-linux", .object = std::string("\0\1\2", 3)};
  entry.checks = {{1, 64, "S0", "X", ScalarType::kInt32, "found"}};
  ASSERT_TRUE(cache->put(key, entry));
  expect_equal(*value_of(cache->find(key)), entry);
}

TEST(Cache, BestAndNearest) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  EXPECT_FALSE(value_of(cache->best(problem_of(0))));
  const std::vector<Measurement> measurements = {
      measurement_of(0, 9, "a"), measurement_of(0, 5, "b"), measurement_of(0, 2, "c", "other GPU"),
      measurement_of(1, 7, "d"), measurement_of(3, 3, "e"),
  };
  ASSERT_TRUE(cache->add(measurements));
  Measurement wrong = measurement_of(0, 1, "w");
  wrong.state = Measurement::State::kWrong;
  ASSERT_TRUE(cache->add(wrong));
  EXPECT_EQ(value_of(cache->best(problem_of(0), "GPU"))->options, "b");
  EXPECT_EQ(value_of(cache->best(problem_of(0)))->options, "c");
  EXPECT_EQ(value_of(cache->best(problem_of(0), "GPU", 5)).size(), 2U);
  EXPECT_EQ(value_of(cache->measurements(problem_of(0), "GPU")).size(), 3U);
  ASSERT_TRUE(cache->add(measurement_of(0, 20, "b")));  // measured again: it replaces
  EXPECT_EQ(value_of(cache->best(problem_of(0), "GPU"))->options, "a");
  const auto near = value_of(cache->nearest(problem_of(0), "GPU"));
  ASSERT_EQ(near.size(), 2U);
  EXPECT_EQ(near[0].best.options, "d");
  EXPECT_EQ(near[0].distance, 1);
  EXPECT_EQ(near[1].best.options, "e");
  EXPECT_TRUE(value_of(cache->nearest(problem_of(0), "a GPU that nobody has")).empty());
}

Interface interface_of(const std::string& entry) {
  return {.entry = entry,
          .program = problem_of(0).program,
          .text = "def f",
          .compiler = "1",
          .sizes = {"N", "M"},
          .tensors = {{"A", ScalarType::kFloat16, Interface::Role::kInput, {"N", "(* 2 M)"}},
                      {"O", ScalarType::kFloat32, Interface::Role::kInOut, {"N"}}},
          .scalars = {{"s", ScalarType::kInt64, true}},
          .parameters = {"A", "s"},
          .results = {"O"},
          .has_run_time_checks = false};
}

TEST(Cache, Interfaces) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  ASSERT_TRUE(cache->put(Digest::of("text"), interface_of("f")));
  EXPECT_EQ(value_of(cache->find_interface(Digest::of("text"))), interface_of("f"));
  EXPECT_FALSE(value_of(cache->find_interface(Digest::of("other text"))));
  EXPECT_EQ(value_of(cache->interfaces()).size(), 1U);
}

TEST(Cache, MergeKeepsTheFaster) {
  const Folder folder;
  auto a = value_of(Cache::open(folder.path("a")));
  auto b = value_of(Cache::open(folder.path("b")));
  ASSERT_TRUE(a->put(key_of(0), entry_of(0)));
  ASSERT_TRUE(b->put(key_of(0), entry_of(0)));
  ASSERT_TRUE(b->put(key_of(1), entry_of(1)));
  ASSERT_TRUE(a->add(measurement_of(0, 5, "x")));
  ASSERT_TRUE(b->add(measurement_of(0, 4, "x")));
  ASSERT_TRUE(a->add(measurement_of(0, 3, "y")));
  ASSERT_TRUE(b->add(measurement_of(0, 6, "y")));
  const Merged merged = value_of(a->merge(*b));
  EXPECT_EQ(merged.entries, 1);
  EXPECT_EQ(merged.measurements, 1);
  EXPECT_EQ(value_of(a->best(problem_of(0), "GPU", 2))[0].time_us, 3);
  EXPECT_EQ(value_of(a->best(problem_of(0), "GPU", 2))[1].time_us, 4);
  EXPECT_EQ(value_of(a->merge(*b)).measurements, 0);
}

TEST(Cache, MergeJoinsCodeForArchitectures) {
  const Folder folder;
  auto a = value_of(Cache::open(folder.path("a")));
  auto b = value_of(Cache::open(folder.path("b")));
  ASSERT_TRUE(a->put(key_of(0), entry_of(0)));
  Entry with_more = entry_of(0);
  with_more.gpu.others = {{"sm_86", "for another"}};
  ASSERT_TRUE(b->put(key_of(0), with_more));
  EXPECT_EQ(value_of(a->merge(*b)).entries, 1);
  const Entry joined = *value_of(a->find(key_of(0)));
  EXPECT_EQ(joined.gpu.others, (std::vector<Cubin>{{"sm_80", "code 0"}, {"sm_86", "for another"}}));
  EXPECT_EQ(value_of(a->merge(*b)).entries, 0);
}

TEST(Cache, PutKeepsCodeForOtherArchitectures) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  ASSERT_TRUE(cache->put(key_of(0), entry_of(0)));
  Entry again = entry_of(0);
  again.gpu.cubin = "newer code";
  again.gpu.others = {{"sm_86", "for another"}};
  again.created = 3000;
  ASSERT_TRUE(cache->put(key_of(0), again));
  again.gpu.others.push_back({"sm_80", "code 0"});
  expect_equal(*value_of(cache->find(key_of(0))), again);
  // Code of another text would not have this one's launches.
  Entry other = again;
  other.certificate.proved_text = "def";
  other.gpu.others = {};
  ASSERT_TRUE(cache->put(key_of(0), other));
  EXPECT_TRUE(value_of(cache->find(key_of(0)))->gpu.others.empty());
  auto from = value_of(Cache::open(folder.path("from")));
  ASSERT_TRUE(from->put(key_of(0), again));
  EXPECT_EQ(value_of(cache->merge(*from)).entries, 0);
  EXPECT_TRUE(value_of(cache->find(key_of(0)))->gpu.others.empty());
}

TEST(Cache, AnEntryHasCodeForSeveralArchitectures) {
  GpuCode code;
  code.arch = "sm_90a";
  code.cubin = "90a";
  code.others = {{"sm_80", "80"}, {"sm_86", "86"}, {"sm_100f", "100f"}};
  const auto bytes_for = [&](int device) {
    const std::optional<Cubin> found = code.code_for(device);
    return found ? found->bytes : "none";
  };
  EXPECT_EQ(bytes_for(90), "90a");
  EXPECT_EQ(bytes_for(80), "80");
  EXPECT_EQ(bytes_for(86), "86");
  EXPECT_EQ(bytes_for(89), "86") << "the newest that runs there";
  EXPECT_EQ(bytes_for(103), "100f");
  EXPECT_EQ(bytes_for(75), "none");
  EXPECT_EQ(bytes_for(91), "none");
  code.others.insert(code.others.begin(), {"sm_90", "90"});
  EXPECT_EQ(bytes_for(90), "90a");
  EXPECT_EQ(bytes_for(91), "90");
  std::swap(code.arch, code.others[0].arch);
  std::swap(code.cubin, code.others[0].bytes);
  EXPECT_EQ(bytes_for(90), "90a") << "also where it is not the first";
}

TEST(Cache, PruneRemovesWhatIsAskedFor) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  for (const char* options : {"", "x", "y", "z"}) ASSERT_TRUE(cache->put(key_of(0, options), entry_of(0)));
  ASSERT_TRUE(cache->put(key_of(5), entry_of(5)));
  ASSERT_TRUE(cache->add(measurement_of(0, 5, "x")));
  ASSERT_TRUE(cache->add(measurement_of(0, 4, "y")));
  ASSERT_TRUE(cache->add(measurement_of(0, 6, "z")));
  Pruned pruned = value_of(cache->prune({.best_only = 1}));
  EXPECT_EQ(pruned.entries, 2);  // not "", which was never measured
  EXPECT_EQ(pruned.measurements, 2);
  EXPECT_TRUE(value_of(cache->find(key_of(0, "y"))));
  EXPECT_FALSE(value_of(cache->find(key_of(0, "x"))));
  pruned = value_of(cache->prune({.older_than = 1005}));
  EXPECT_EQ(pruned.entries, 2);
  pruned = value_of(cache->prune({.other_compilers_than = "2"}));
  EXPECT_EQ(pruned.entries, 1);
  EXPECT_EQ(value_of(cache->list()).size(), 0U);
}

TEST(Cache, ExportIsReadOnlyAndInOneStep) {
  const Folder folder;
  auto cache = value_of(Cache::open(folder.path("c")));
  ASSERT_TRUE(cache->put(Digest::of("text"), interface_of("f")));
  for (const char* options : {"", "x", "y"}) ASSERT_TRUE(cache->put(key_of(0, options), entry_of(0)));
  ASSERT_TRUE(cache->add(measurement_of(0, 5, "x")));
  ASSERT_TRUE(cache->add(measurement_of(0, 4, "y")));
  const std::string path = folder.path("exported");
  EXPECT_EQ(value_of(cache->export_to(path, {.entries = {"f"}, .targets = {"sm_90a"}})).entries, 2);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0444));
  EXPECT_EQ(cache->export_to(path, {}).error().to_string(),
            "error: the file " + path + " cannot be made: File exists\n");
  EXPECT_EQ(value_of(cache->export_to(folder.path("none"), {.targets = {"sm_80"}})).entries, 0);
  auto exported = value_of(Cache::open(path, {.mode = Mode::kReadOnly}));
  EXPECT_TRUE(value_of(exported->find(key_of(0))));
  EXPECT_FALSE(value_of(exported->find(key_of(0, "x"))));
  EXPECT_TRUE(value_of(exported->find(key_of(0, "y"))));
  const auto complete = [](const Key& key, Entry& entry) -> Result<void> {
    if (key.options == "x") return fail("not that one");
    entry.gpu.others.push_back({"sm_86", "more"});
    return {};
  };
  EXPECT_EQ(cache->export_to(folder.path("more"), {.best_only = false, .complete = complete}).error().to_string(),
            "error: not that one\n");
  ASSERT_TRUE(cache->export_to(folder.path("more"), {.complete = complete}));
  auto completed = value_of(Cache::open(folder.path("more"), {.mode = Mode::kReadOnly}));
  EXPECT_EQ(value_of(completed->find(key_of(0)))->gpu.others.back().bytes, "more");
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) files += file.exists() ? 1 : 0;
  EXPECT_EQ(files, 4U);
}

TEST(Cache, OtherFilesAreRefused) {
  const Folder folder;
  const std::string path = folder.path("c");
  EXPECT_EQ(Cache::open(path, {.mode = Mode::kReadOnly}).error().to_string(),
            "error: the cache " + path + ": it does not exist, or there is no right to open it\n");
  std::ofstream(path) << "def f(float(N) A) -> (B) { B(i) = A(i) } # longer than the header of a database ........";
  EXPECT_EQ(Cache::open(path).error().to_string(), "error: the cache " + path + ": it is not a cache\n");
  EXPECT_TRUE(is_unreadable(path));
  EXPECT_FALSE(is_unreadable(folder.path("missing")));
  EXPECT_FALSE(is_unreadable(folder.path()));
  // Nothing is waited for at a pipe, and nothing put beside a device.
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const std::string& other : {folder.path("pipe"), folder.path("."), std::string("/dev/null")}) {
    EXPECT_EQ(Cache::open(other).error().to_string(), "error: the cache " + other + ": it is no regular file\n");
    EXPECT_FALSE(is_unreadable(other));
  }
  EXPECT_FALSE(std::filesystem::exists("/dev/null-journal"));
  EXPECT_EQ(Cache::open("").error().to_string(), "error: a cache is a file; its name is empty\n");
  for (const std::string name : {":memory:", "file:x?mode=memory"}) {
    EXPECT_EQ(Cache::open(name).error().to_string(), "error: the cache " + name +
                                                         ": to SQLite that is no file's name, and what it holds may be "
                                                         "lost; write ./" +
                                                         name + " for a file called so\n");
  }
  const std::string long_name = folder.path(std::string(300, 'x'));
  EXPECT_EQ(Cache::open(long_name).error().to_string(), "error: the cache " + long_name + ": its name of " +
                                                            std::to_string(long_name.size()) +
                                                            " bytes is too long for the file system\n");
  std::filesystem::create_symlink("loop", folder.path("loop"));
  EXPECT_EQ(Cache::open(folder.path("loop")).error().to_string(),
            "error: the cache " + folder.path("loop") + ": its name is a loop of links\n");
  EXPECT_EQ(Cache::open(path + "/x").error().to_string(),
            "error: the cache " + path + "/x: a part of its path is no folder\n");
  ASSERT_TRUE(Cache::open(folder.path("good")));
  EXPECT_FALSE(is_unreadable(folder.path("good")));
  EXPECT_EQ(Cache::open(folder.path("no/folder")).error().to_string(),
            "error: the cache " + folder.path("no/folder") + ": there is no folder '" + folder.path("no") + "'\n");
}

}  // namespace
}  // namespace tc::cache::test
