// Files that were cut or changed are refused, whatever was changed, and before anything of them runs.
#include "../deploy/saved.h"
#include "io/bytes.h"
#include "io/json.h"
#include "package/file.h"

#include <sys/resource.h>

#include <csignal>
#include <random>

namespace tenon {
namespace {

using ::testing::AnyOf;
using testing::content;
using testing::error_of;
using ::testing::HasSubstr;
using testing::put;
using testing::TemporaryFile;

using Content = std::vector<std::byte>;
constexpr size_t kMagic = 16, kBeforeHeader = kMagic + 2 * sizeof(uint64_t);

template <typename F>
Content saved(const Compiled<F>& compiled) {
  TemporaryFile file(".tenon");
  save_compiled(compiled, file.path());
  return content(file.path());
}

// Files with everything that a file can have: guards, symbols from data, writes, views, constants, random numbers,
// bodies of loops and branches.
const std::vector<Content>& whole_files() {
  static const std::vector<Content> files = [] {
    NoGrad off;
    std::vector<Content> made;
    nn::Sequential net(nn::Conv2d(3, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(), nn::Linear(16, 5));
    net.eval();
    auto infer = compile([&](Tensor x) { return net(x); }, {.dynamic = Dynamic::On, .freeze = Freeze::On});
    infer(randn({2, 3, 4, 4}));
    made.push_back(saved(infer));

    auto picks = compile(
        [](Tensor x, auto scale) {
          Tensor picked = x.index_select(0, (x.sum(1) > 0).nonzero().squeeze(1));
          check(picked.size(0) < 100);
          return std::tuple(picked * scale, x.t(), x.size(0) * 2);
        },
        {.dynamic = Dynamic::On, .capture_dynamic_output_shape_ops = true});
    picks(ones({4, 3}), 0.5);
    made.push_back(saved(picks));

    nn::BatchNorm1d norm(3);
    auto trains = compile([&](Tensor x, Tensor y) {
      y.mul_(2);
      return std::pair(dropout(norm(x), 0.5, true), y.select(0, 0));
    });
    trains(randn({5, 3}), randn({2, 2}));
    made.push_back(saved(trains));

    auto loops = compile(
        [](Tensor xs) {
          auto step = [](Tensor sum, Tensor x) {
            Tensor next = cond(sum.sum() > 1, [&] { return sum * 0.5; }, [&] { return sum + x; });
            return std::pair(next, x.exp());
          };
          auto [last, all] = scan(step, zeros({3}), xs);
          return std::pair(
              all, while_loop([](Tensor now) { return now.sum() < 9; }, [](Tensor now) { return now + 1; }, last));
        },
        {.dynamic = Dynamic::On});
    loops(randn({4, 3}));
    made.push_back(saved(loops));
    return made;
  }();
  return files;
}

void load(const Content& bytes) { (void)package::read(bytes, "damaged.tenon"); }

TEST(DamagedFiles, whole_ones_are_taken) {
  for (const Content& whole : whole_files()) EXPECT_NO_THROW(load(whole));
}

TEST(DamagedFiles, cut_anywhere) {
  for (const Content& whole : whole_files()) {
    // Mapped, at every page; from memory, at every 64th byte and around the first ones.
    for (size_t length = 0; length < whole.size(); length += 4096) {
      TemporaryFile part(".tenon");
      put(part.path(), std::span(whole).first(length));
      EXPECT_THAT(error_of<ValueError>([&] { package::read(part.path()); }), HasSubstr(part.path().string())) << length;
    }
    for (size_t length = 0; length < whole.size(); length += length < 256 ? 1 : 61) {
      Content cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_THAT(error_of<ValueError>([&] { load(cut); }), HasSubstr("[load_compiled] damaged.tenon: ")) << length;
    }
  }
}

TEST(DamagedFiles, changed_anywhere) {
  std::mt19937_64 random(20261119);
  for (int variant = 0; variant < 10'000; ++variant) {
    const Content& whole = whole_files()[static_cast<size_t>(variant) % whole_files().size()];
    Content changed = whole;
    for (uint64_t count = 1 + random() % 4; count > 0; --count) {
      std::byte& at = changed[random() % changed.size()];
      at ^= static_cast<std::byte>(1 + random() % 255);
    }
    if (changed == whole) continue;
    EXPECT_THAT(error_of<ValueError>([&] { load(changed); }), HasSubstr("[load_compiled] damaged.tenon: ")) << variant;
  }
}

TEST(DamagedFiles, something_is_put_behind_or_in_front) {
  Content longer = whole_files()[0];
  longer.push_back(std::byte{0});
  EXPECT_THAT(error_of<ValueError>([&] { load(longer); }), HasSubstr("something stands behind its last section"));
  longer.insert(longer.begin(), std::byte{'t'});
  EXPECT_THAT(error_of<ValueError>([&] { load(longer); }), HasSubstr("it is no file of save_compiled"));
}

// ---- Files that contradict themselves: their hashes are right ----

struct Parts {
  std::string header;
  std::vector<std::string> sections;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

io::Json* member(io::Json& json, std::string_view name) {
  for (io::Json::Member& each : const_cast<io::Json::Object&>(*json.object()))
    if (each.name == name) return &each.value;
  ADD_FAILURE() << name;
  return nullptr;
}

Parts taken_apart(const Content& whole) {
  std::span<const std::byte> all(whole);
  const auto length = io::little<uint64_t>(all, kMagic);
  Parts parts{text(all.subspan(kBeforeHeader, length)), {}};
  io::Json header = io::parse_json(parts.header);
  size_t at = kBeforeHeader + length;
  for (io::Json& section : const_cast<io::Json::List&>(*member(header, "sections")->list())) {
    const auto size = static_cast<size_t>(*member(section, "size")->number());
    parts.sections.push_back(text(all.subspan(at, size)));
    at += size;
  }
  return parts;
}

// Sizes and hashes are made to fit.
Content put_together(Parts parts) {
  auto bytes_of = [](const std::string& words) { return std::as_bytes(std::span(words)); };
  io::Json header = io::parse_json(parts.header);
  auto& sections = const_cast<io::Json::List&>(*member(header, "sections")->list());
  for (size_t at = 0; at < sections.size(); ++at) {
    *member(sections[at], "size") = {static_cast<int64_t>(parts.sections[at].size())};
    *member(sections[at],
            "hash") = {fmt::format("{:x}", static_cast<uint64_t>(package::hash_of(bytes_of(parts.sections[at]))))};
  }
  parts.header = io::json_text(header);
  while ((kBeforeHeader + parts.header.size()) % 64 != 0) parts.header += ' ';
  std::string whole = "tenon function 1";
  const uint64_t numbers[] = {parts.header.size(), static_cast<uint64_t>(package::hash_of(bytes_of(parts.header)))};
  whole += text(std::as_bytes(std::span(numbers)));
  whole += parts.header;
  for (const std::string& section : parts.sections) whole += section;
  return {bytes_of(whole).begin(), bytes_of(whole).end()};
}

TEST(DamagedFiles, taken_apart_and_put_together_they_are_themselves) {
  for (const Content& whole : whole_files()) EXPECT_NO_THROW(load(put_together(taken_apart(whole))));
}

TEST(DamagedFiles, of_another_version) {
  Parts parts = taken_apart(whole_files()[0]);
  io::Json header = io::parse_json(parts.header);
  *member(header, "tenon") = {std::string("99.0.0")};
  parts.header = io::json_text(header);
  EXPECT_THAT(error_of<ValueError>([&] { load(put_together(parts)); }),
              HasSubstr("it was saved by version 99.0.0, this is version "));
}

// A number, a name or a character of the description is another one: whoever reads it finds out, or it does no harm to
// load it. (Under asan.)
TEST(DamagedFiles, descriptions_that_contradict_themselves) {
  std::mt19937_64 random(20261120);
  constexpr std::string_view kLetters = "0123456789-{}[],:\"\\abcdefghijklmnopqrstuvwxyz_()+*/<= ";
  int refused = 0, loaded = 0;
  for (int variant = 0; variant < 3'000; ++variant) {
    Parts parts = taken_apart(whole_files()[static_cast<size_t>(variant) % whole_files().size()]);
    std::string& description = parts.sections[0];
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      size_t at = random() % description.size();
      if (variant % 2 == 0)  // a digit by another
        while (!std::isdigit(static_cast<unsigned char>(description[at]))) at = (at + 1) % description.size();
      description[at] = variant % 2 == 0 ? kLetters[random() % 10] : kLetters[random() % kLetters.size()];
    }
    try {
      load(put_together(parts));
      ++loaded;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1'000);
  EXPECT_GT(loaded, 0);
}

TEST(DamagedFiles, objects_and_tensors_that_are_something_else) {
  std::mt19937_64 random(20261121);
  for (int variant = 0; variant < 2'000; ++variant) {
    Parts parts = taken_apart(whole_files()[static_cast<size_t>(variant) % whole_files().size()]);
    // Objects, or the header of the tensors.
    std::string& section = parts.sections[1 + random() % 3];
    if (section.empty()) continue;
    if (variant % 3 == 0)
      section.resize(random() % section.size());
    else
      for (uint64_t count = 1 + random() % 8; count > 0; --count)
        section[random() % section.size()] = static_cast<char>(random());
    try {
      load(put_together(parts));  // it is not run
    } catch (const Error&) {
    }
  }
}

// ---- Saving ----

TEST(DamagedFiles, a_disk_that_is_full_keeps_what_was_there) {
  auto f = compile([](Tensor x) { return x * 3; });
  f(ones({3}));
  TemporaryFile file(".tenon");
  save_compiled(f, file.path());
  const Content before = content(file.path());
  // No file may be longer than half of it: writing fails as it does where no room is left.
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit half = limit;
  half.rlim_cur = before.size() / 2;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &half), 0);
  const std::string error = error_of([&] { save_compiled(f, file.path()); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("[save_compiled]"));
  EXPECT_EQ(content(file.path()), before);
  for (const auto& entry : std::filesystem::directory_iterator(file.path().parent_path()))
    EXPECT_TRUE(entry.path() == file.path() || !entry.path().string().starts_with(file.path().string()))
        << entry.path() << " was left";
}

}  // namespace
}  // namespace tenon
