#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tc/cache/cache.h"
#include "tc/cache/records.h"
#include "tests/cache/values.h"

/// What a cache does when the machine fails it. After each fault: whatever was acknowledged is there, and whatever is
/// handed out is what was put.
namespace tc::cache::test {
namespace {

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr int kValues = 3;

/// A small file with one of each: an entry, a measurement, an interface.
std::string small_cache(const std::string& path) {
  {
    auto cache = value_of(Cache::open(path));
    EXPECT_TRUE(cache->put(key_of(0), entry_of(0, 40)));
    EXPECT_TRUE(cache->add(measurement_of(0, 5)));
    EXPECT_TRUE(cache->put(Digest::of("text"), Interface{.entry = "f", .program = problem_of(0).program}));
  }
  return read_bytes(path);
}

/// What a damaged file still hands out is what was put. Returns how many of the three values are still there.
int check_what_is_found(const std::string& path, int64_t& reports) {
  const auto report = [&](const std::string& sentence) {
    EXPECT_FALSE(sentence.empty());
    ++reports;
  };
  auto cache = Cache::open(path, {.mode = Mode::kReadOnly, .on_damage = report});
  if (!cache) return ++reports, 0;
  int found = 0;
  const auto entry = (*cache)->find(key_of(0));
  if (!entry) ++reports;
  if (entry && *entry) {
    EXPECT_EQ(to_bytes(key_of(0), **entry), to_bytes(key_of(0), entry_of(0, 40)));
    ++found;
  }
  const auto best = (*cache)->best(problem_of(0));
  if (!best) ++reports;
  if (best && *best) {
    EXPECT_EQ((*best)->time_us, 5);
    EXPECT_EQ((*best)->options, "");
    ++found;
  }
  const auto interface = (*cache)->find_interface(Digest::of("text"));
  if (!interface) ++reports;
  if (interface && *interface) {
    EXPECT_EQ((*interface)->entry, "f");
    ++found;
  }
  return found;
}

struct Flips {
  int64_t trials = 0, harmless = 0, unreported = 0;
};

/// Flips each bit of every `step`-th byte from `first` on, in a copy of the file, each a trial of its own.
Flips flip_bits(const std::string& path, const std::string& good, size_t first, size_t step) {
  std::ofstream(path, std::ios::binary) << good;
  const int file = open(path.c_str(), O_RDWR);
  Flips flips;
  for (size_t at = first; at < good.size(); at += step) {
    for (int bit = 0; bit < 8; ++bit) {
      const char flipped = static_cast<char>(good[at] ^ (1 << bit));
      EXPECT_EQ(pwrite(file, &flipped, 1, static_cast<off_t>(at)), 1);
      int64_t reports = 0;
      const int found = check_what_is_found(path, reports);
      ++flips.trials;
      if (found == kValues) ++flips.harmless;
      if (found < kValues && reports == 0) ++flips.unreported;
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << "bit " << bit << " of byte " << at;
        return flips;
      }
    }
    EXPECT_EQ(pwrite(file, &good[at], 1, static_cast<off_t>(at)), 1);
  }
  close(file);
  return flips;
}

TEST(Faults, EverySingleBitFlip) {
  const Folder folder;
  const std::string path = folder.path("c");
  const std::string good = small_cache(path);
  int64_t reports = 0;
  ASSERT_EQ(check_what_is_found(path, reports), kValues);
  ASSERT_EQ(reports, 0);
  Flips odd, even;
  std::thread other([&] { odd = flip_bits(folder.path("odd"), good, 1, 2); });
  even = flip_bits(folder.path("even"), good, 0, 2);
  other.join();
  EXPECT_EQ(odd.trials + even.trials, static_cast<int64_t>(good.size()) * 8);
  std::printf("%lld flips: %lld met nothing that is stored, %lld hid a row without a report\n",
              static_cast<long long>(odd.trials + even.trials), static_cast<long long>(odd.harmless + even.harmless),
              static_cast<long long>(odd.unreported + even.unreported));
}

TEST(Faults, TruncationAtEveryLength) {
  const Folder folder;
  const std::string path = folder.path("c");
  const std::string good = small_cache(path);
  for (size_t length = good.size(); length-- > 0;) {
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(length)), 0);
    int64_t reports = 0;
    const int found = check_what_is_found(path, reports);
    ASSERT_TRUE(found == kValues || reports > 0) << "cut to " << length << " bytes";
    ASSERT_FALSE(HasFailure()) << "cut to " << length << " bytes";
  }
}

/// In a process of its own: puts entries from `first` on, and acknowledges each through the pipe.
[[noreturn]] void write_until_killed(const std::string& path, int first, int acknowledge) {
  auto cache = Cache::open(path);
  if (!cache) _exit(1);
  for (int number = first;; ++number) {
    if (!(*cache)->put(key_of(number % 500), entry_of(number, 3000))) _exit(2);
    if (write(acknowledge, &number, sizeof(number)) != sizeof(number)) _exit(3);
  }
}

/// 1,000 times: a writer is killed at a random moment, and everything it acknowledged is there, and as it was put.
TEST(Faults, KilledWhileWriting) {
  const Folder folder;
  const std::string path = folder.path("c");
  std::srand(1);
  std::map<int, int> acknowledged;  // the last number put under each key
  int next = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) write_until_killed(path, next, pipe_ends[1]);
    close(pipe_ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(std::rand() % 4000));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed with " << WEXITSTATUS(status);
    int number = next - 1;
    while (read(pipe_ends[0], &number, sizeof(number)) == sizeof(number)) acknowledged[number % 500] = number;
    close(pipe_ends[0]);
    auto cache = value_of(Cache::open(path, {.on_damage = [](const std::string& text) { ADD_FAILURE() << text; }}));
    // The one after the last acknowledged may be there too, whole.
    for (int back = 0; back < 4; ++back) {
      const int which = number - back;
      const auto last = acknowledged.find(which % 500);
      if (last == acknowledged.end() || last->second != which) continue;
      const auto entry = value_of(cache->find(key_of(which % 500)));
      ASSERT_TRUE(entry) << "trial " << trial << ", number " << which;
      const int held = static_cast<int>(entry->created) - 1000;
      ASSERT_TRUE(held == which || held == number + 1) << "trial " << trial;
      ASSERT_EQ(to_bytes(key_of(which % 500), *entry), to_bytes(key_of(which % 500), entry_of(held, 3000)));
    }
    next = number + 2;
    if (trial % 100 == 99) {
      const Verified verified = value_of(cache->verify());
      ASSERT_TRUE(verified.damage.empty()) << verified.damage[0];
      for (const auto& [key, last] : acknowledged) {
        const auto entry = value_of(cache->find(key_of(key)));
        ASSERT_TRUE(entry);
        ASSERT_GE(entry->created - 1000, last) << "an older one";
      }
    }
    ASSERT_FALSE(HasFailure()) << "trial " << trial;
  }
  std::printf("%d kills, %d writes acknowledged\n", kTrials, next);
  EXPECT_GT(next, kTrials / 4) << "the kills came too early to mean anything";
}

/// Two processes write while four read, for a second, or for as many as TC_CACHE_SECONDS says.
TEST(Faults, TwoWritersAndFourReaders) {
  const Folder folder;
  const std::string path = folder.path("c");
  (void)value_of(Cache::open(path));
  const char* wanted = std::getenv("TC_CACHE_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(wanted ? std::atoi(wanted) : 1);
  std::vector<pid_t> children;
  for (int process = 0; process < 6; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    int64_t damage = 0;
    auto cache = Cache::open(path, {.mode = process < 2 ? Mode::kReadWrite : Mode::kReadOnly,
                                    .on_damage = [&](const std::string&) { ++damage; }});
    if (!cache) _exit(10);
    int number = process, steps = 0;
    for (; std::chrono::steady_clock::now() < end; ++steps) {
      number = (number * 13 + 7) % 60;
      if (process < 2) {
        const int mine = number * 2 + process;  // each writer has keys of its own
        if (!(*cache)->put(key_of(mine), entry_of(mine, 2000))) _exit(11);
        const auto entry = (*cache)->find(key_of(mine));
        if (!entry || !*entry) _exit(12);
      } else {
        const auto entry = (*cache)->find(key_of(number));
        if (!entry) _exit(13);
        if (*entry && to_bytes(key_of(number), **entry) != to_bytes(key_of(number), entry_of(number, 2000))) _exit(14);
      }
    }
    _exit(damage > 0 ? 15 : steps > 0 ? 0 : 16);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  auto cache = value_of(Cache::open(path));
  EXPECT_TRUE(value_of(cache->verify()).damage.empty());
}

/// In a child: a file may not grow beyond what it has, as on a full disk.
TEST(Faults, FullDisk) {
  const Folder folder;
  const std::string path = folder.path("c");
  (void)small_cache(path);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{40'000, 40'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto cache = Cache::open(path);
    if (!cache) _exit(1);
    int put = 1;
    for (; put < 100; ++put) {
      const auto done = (*cache)->put(key_of(put), entry_of(put, 3000));
      if (!done) break;
    }
    if (put == 100) _exit(2);
    for (int i = 0; i < put; ++i) {
      const auto entry = (*cache)->find(key_of(i));
      if (!entry || !*entry) _exit(3);
    }
    const auto lost = (*cache)->find(key_of(put));
    _exit(lost && !*lost ? 100 + put : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) > 100) << status;
  auto cache = value_of(Cache::open(path));
  EXPECT_TRUE(value_of(cache->verify()).damage.empty());
  for (int i = 0; i < WEXITSTATUS(status) - 100; ++i) {
    const auto entry = value_of(cache->find(key_of(i)));
    ASSERT_TRUE(entry);
    EXPECT_EQ(to_bytes(key_of(i), *entry), to_bytes(key_of(i), entry_of(i, i < 1 ? 40 : 3000)));
  }
  ASSERT_TRUE(cache->put(key_of(1000), entry_of(1000)));
}

/// As somebody who may read only: the superuser may write anywhere.
TEST(Faults, ReadOnlyFolder) {
  const Folder folder;
  const std::string path = folder.path("c");
  (void)small_cache(path);
  chmod(path.c_str(), 0444);
  chmod(folder.path().c_str(), 0555);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
    auto reader = Cache::open(path, {.mode = Mode::kReadOnly});
    if (!reader) _exit(2);
    const auto entry = (*reader)->find(key_of(0));
    if (!entry || !*entry) _exit(3);
    auto writer = Cache::open(path);
    if (writer && (*writer)->put(key_of(5), entry_of(5))) _exit(4);
    auto made = Cache::open(folder.path("another"));
    _exit(made ? 5 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  chmod(folder.path().c_str(), 0755);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  auto cache = value_of(Cache::open(path, {.mode = Mode::kReadOnly}));
  EXPECT_TRUE(value_of(cache->find(key_of(0))));
  EXPECT_FALSE(value_of(cache->find(key_of(5))));
}

}  // namespace
}  // namespace tc::cache::test
