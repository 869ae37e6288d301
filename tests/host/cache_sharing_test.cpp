// `kiln cache key`, `push`, `pull`, `remote status` and `layer create`, and jobs that share programs, as a process.
#include "host/sample_jobs.hpp"
#include "host/stored_cache.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// A user on a machine: folders for the cache, the key and the configuration of this test alone.
struct SharingUser {
  TemporaryFolder folder;

  Finished kiln(std::vector<std::string> words) const {
    return run_kiln(std::move(words),
                    {.environment = {{"KILN_CACHE_DIR", folder / "cache"},
                                     {"KILN_KEY_FILE", folder / "state/key"},
                                     {"XDG_CONFIG_HOME", folder / "config"},
                                     // Vulkan's loader unloads the driver before leaks are looked for.
                                     {"ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0"}}});
  }
  // A configuration with one remote or layer and one job.
  std::string config(const std::string& head) const {
    return folder.write("shared.toml", head + "\n" + conv_3x3("shared"));
  }
  Finished run(const std::string& config) const { return kiln({"run", config, "--json", "--device", "opengl:0"}); }
  std::string public_key() const { return kiln({"cache", "key", "list", "--json"}).json()["keys"][0]["public_key"]; }
};

std::string remote(const std::string& url, bool writes) {
  return "[[cache.remote]]\nurl = \"" + url + "\"\nwriters = [\"ci\"]\n" +
         (writes ? "mode = \"read_write\"\nsign_with = \"ci\"\n" : "");
}

std::string tier_of(const Finished& run) { return run.json()["jobs"][0]["program"]["tier"]; }

TEST_CASE("sharing: what one user builds, another one loads without a compiler call") {
  SharingUser writer;
  TemporaryFolder share;
  const std::string url = "file://" + share.path().string();
  REQUIRE(writer.kiln({"cache", "key", "create", "ci", "--until", "2099-12-31"}).status == 0);
  const std::string write = writer.config(remote(url, true));
  const Finished built = writer.run(write);
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(tier_of(built) == "built");
  // A run writes for 200 ms after its jobs at most, which is too short for a busy machine.
  const auto pushed = writer.kiln({"cache", "push", write, "--json"}).json()["remotes"][0];
  CHECK(pushed["written"].get<int>() + pushed["already"].get<int>() >= 1);

  // On a busy machine the first answer may come too late, and costs a build.
  std::optional<SharingUser> reader;
  std::string config;
  Finished loaded;
  for (int attempt = 0; attempt < 10 && (!reader || tier_of(loaded) != "remote"); ++attempt) {
    reader.emplace();
    REQUIRE(reader->kiln({"cache", "key", "trust", "ci", writer.public_key()}).status == 0);
    config = reader->config(remote(url, false));
    loaded = reader->run(config);
    INFO(loaded.err);
    REQUIRE(loaded.status == 0);
  }
  INFO(loaded.err);
  CHECK(tier_of(loaded) == "remote");
  CHECK(loaded.json()["cache"]["builds"] == 0);
  CHECK(loaded.json()["cache"]["shared"]["hits"] >= 1);
  CHECK(tier_of(reader->run(config)) == "disk");
}

TEST_CASE("sharing: push and pull by hand, and the status of a remote") {
  SharingUser writer, reader;
  TemporaryFolder share;
  const std::string url = "file://" + share.path().string();
  REQUIRE(writer.kiln({"cache", "key", "create", "ci"}).status == 0);
  REQUIRE(writer.run(writer.config("")).status == 0);
  const std::string write = writer.config(remote(url, true));
  const Finished pushed = writer.kiln({"cache", "push", write, "--json"});
  INFO(pushed.err);
  REQUIRE(pushed.status == 0);
  CHECK(pushed.json()["remotes"][0]["written"] >= 1);
  CHECK(writer.kiln({"cache", "push", write, "--json"}).json()["remotes"][0]["written"] == 0);

  REQUIRE(reader.kiln({"cache", "key", "trust", "ci", writer.public_key()}).status == 0);
  const std::string read = reader.config(remote(url, false));
  const Finished pulled = reader.kiln({"cache", "pull", read, "--json"});
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  CHECK(pulled.json()["remotes"][0]["programs"] == pushed.json()["remotes"][0]["written"]);
  CHECK(tier_of(reader.run(read)) == "disk");
  const Finished status = reader.kiln({"cache", "remote", "status", read, "--json"});
  INFO(status.err);
  CHECK(status.status == 0);
  CHECK(status.json()["remotes"][0]["reachable"] == true);
  CHECK(status.json()["remotes"][0]["accepted"][0]["name"] == "ci");
  CHECK(status.json()["remotes"][0]["answer_ms"].is_number());
  CHECK(status.json()["counts"]["hits"] == 0);
  const std::string absent = reader.config(remote("file:///there/is/none", false));
  const auto unreached = reader.kiln({"cache", "remote", "status", absent, "--json"}).json()["remotes"][0];
  CHECK(unreached["reachable"] == false);
  CHECK(unreached["answer_ms"].is_null());
  CHECK(unreached["round_trip_ms"].is_null());
  std::filesystem::permissions(reader.folder / "cache", std::filesystem::perms(0770));
  const Finished unread = reader.kiln({"cache", "remote", "status", read, "--json"});
  CHECK(unread.status == 1);
  CHECK_THAT(unread.err, Contains("has mode 0770"));
  CHECK(unread.json()["counts"].is_null());
}

TEST_CASE("sharing: text output of push, pull and remote status") {
  const SharingUser writer, reader, stranger;
  const TemporaryFolder share;
  const std::string url = "file://" + share.path().string(), product = tiny_gemm("product");
  // What the verb says of the remote, behind its address.
  const auto said = [&](const SharingUser& user, const std::vector<std::string>& words) -> std::string {
    const Finished finished = user.kiln(words);
    INFO(finished.err << finished.out);
    CHECK(finished.status == 0);
    REQUIRE(finished.out.starts_with(url));
    return finished.out.substr(url.size());
  };
  REQUIRE(writer.kiln({"cache", "key", "create", "ci"}).status == 0);
  REQUIRE(writer.run(writer.folder.write("local.toml", product)).status == 0);
  const std::string write = writer.folder.write("write.toml", remote(url, true) + product);
  const std::string some = "[1-9][0-9]* programs?, [0-9.]+ ([KM]i)?B\n", none = "0 programs, 0 B; [1-9][0-9]* ";
  CHECK_THAT(said(writer, {"cache", "push", write}), Catch::Matches(": wrote " + some));
  CHECK_THAT(said(writer, {"cache", "push", write}), Catch::Matches(": wrote " + none + "already there\n"));

  REQUIRE(reader.kiln({"cache", "key", "trust", "ci", writer.public_key(), "--until", "2099-12-31"}).status == 0);
  const std::string read = reader.folder.write("read.toml", remote(url, false) + product);
  CHECK_THAT(said(reader, {"cache", "pull", read}), Catch::Matches(": stored " + some));
  CHECK_THAT(said(reader, {"cache", "pull", read}), Catch::Matches(": stored " + none + "already stored\n"));
  std::vector<std::filesystem::path> stored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(reader.folder / "cache")) {
    if (entry.path().extension() == ".bin") stored.push_back(entry.path());
  }
  REQUIRE_FALSE(stored.empty());
  for (const std::filesystem::path& file : stored) {
    std::filesystem::path aside = file;
    std::filesystem::rename(file, aside.replace_extension(".quarantined"));
  }
  CHECK_THAT(said(reader, {"cache", "pull", read}),
             Catch::Matches(": stored " + none + "that crashed a process here\n"));

  CHECK_THAT(said(writer, {"cache", "remote", "status", write}), Catch::StartsWith(" (read_write)\n  answers in "));
  CHECK_THAT(
      said(reader, {"cache", "remote", "status", read}),
      Catch::StartsWith(" (read)\n  answers in ") && Contains("\n  accepts key 'ci' (trusted, until 2099-12-31)\n"));
  const Finished unknown =
      stranger.kiln({"cache", "remote", "status", stranger.folder.write("read.toml", remote(url, false) + product)});
  CHECK(unknown.status == 1);
  CHECK_THAT(unknown.out, Contains("\n  no writer is accepted, so nothing is read\n") && !Contains("accepts key"));
  const Finished absent = reader.kiln(
      {"cache", "remote", "status", reader.folder.write("absent.toml", remote("file:///there/is/none", false))});
  CHECK(absent.status == 1);
  CHECK_THAT(absent.out, Catch::StartsWith("file:///there/is/none (read)\n  does not answer: "));
}

TEST_CASE("sharing: push skips a damaged program, writes the others, and ends with status 1") {
  const SharingUser writer;
  const TemporaryFolder share;
  REQUIRE(writer.kiln({"cache", "key", "create", "ci"}).status == 0);
  REQUIRE(writer.run(writer.config("")).status == 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(writer.folder / "cache")) {
    if (entry.path().extension() != ".bin") continue;
    std::filesystem::resize_file(entry.path(), 100);
    break;
  }
  const Finished pushed =
      writer.kiln({"cache", "push", writer.config(remote("file://" + share.path().string(), true)), "--json"});
  INFO(pushed.err);
  CHECK(pushed.status == 1);
  CHECK_THAT(pushed.err, Contains("corrupt"));
  CHECK(pushed.json()["remotes"][0]["bad"].size() == 1);
  CHECK(pushed.json()["remotes"][0]["error"].is_null());
}

TEST_CASE("sharing: tuned winners travel signed, and are measured before they are used") {
  SharingUser writer, reader;
  TemporaryFolder share;
  const std::string url = "file://" + share.path().string();
  const auto config = [](const SharingUser& user, const std::string& head) {
    return user.folder.write("gemm.toml", head +
                                              "[[job]]\nname = \"product\"\nop = \"gemm\"\nm = 64\nn = 128\nk = 96\n"
                                              "input = \"random:1\"\nweights = \"random:2\"\nverify = true\n");
  };
  REQUIRE(writer.kiln({"cache", "key", "create", "ci"}).status == 0);
  const std::string write = config(writer, remote(url, true)), device = "opengl:0";
  REQUIRE(writer.kiln({"tune", write, "--device", device, "--budget", "3 s"}).status == 0);
  const Finished pushed = writer.kiln({"tune", "push", write, "--device", device, "--json"});
  INFO(pushed.err);
  REQUIRE(pushed.status == 0);
  REQUIRE(pushed.json()["devices"][0]["winners"] == 1);
  const auto variant_of = [&](const SharingUser& user, const std::string& file) -> std::string {
    return user.kiln({"run", file, "--json", "--device", device}).json()["jobs"][0]["variant"];
  };
  const std::string winner = variant_of(writer, write);

  const std::string read = config(reader, remote(url, false));
  const Finished untrusted = reader.kiln({"tune", "pull", read, "--device", device, "--json"});
  CHECK(untrusted.status == 1);
  CHECK(untrusted.json()["devices"][0]["waiting"] == 0);
  const std::string before = variant_of(reader, read);
  REQUIRE(reader.kiln({"cache", "key", "trust", "ci", writer.public_key()}).status == 0);
  const Finished pulled = reader.kiln({"tune", "pull", read, "--device", device, "--json"});
  INFO(pulled.err << pulled.out);
  REQUIRE(pulled.status == 0);
  const auto got = pulled.json()["devices"][0];
  CHECK(got["remotes"][0]["taken"] == 1);
  CHECK(got["waiting"] == 1);
  REQUIRE(got["sample"].size() == 1);
  CHECK(got["sample"][0]["variant"] == winner);
  CHECK(got["sample"][0]["wall_ms"] > 0.0);
  // A busy machine may find it slower than what it uses.
  CHECK(got["accepted"] == (got["sample"][0]["holds"] == true ? 1 : 0));
  CHECK(variant_of(reader, read) == (got["accepted"] == 1 ? winner : before));
  const Finished again = reader.kiln({"tune", "pull", read, "--device", device, "--json"});
  CHECK(again.json()["devices"][0]["remotes"][0]["taken"] == 0);
  CHECK(again.json()["devices"][0]["waiting"] == 0);
  CHECK_THAT(reader.kiln({"tune", "pull", read, "--device", device}).out,
             Catch::StartsWith(url + ": 0 winners for opengl:0") && !Contains("are used"));
  const SharingUser fourth;
  REQUIRE(fourth.kiln({"cache", "key", "trust", "ci", writer.public_key()}).status == 0);
  const Finished told = fourth.kiln({"tune", "pull", config(fourth, remote(url, false)), "--device", device});
  INFO(told.err << told.out);
  CHECK_THAT(told.out, Catch::StartsWith(url + ": 1 winner for opengl:0\n") &&
                           Catch::Matches("(.|\n)*\n[01] of 1 winner of other machines are used\n"));

  // Altered on the server, or signed by a key that was revoked: nothing comes in.
  SharingUser third;
  REQUIRE(third.kiln({"cache", "key", "trust", "ci", writer.public_key()}).status == 0);
  const std::string last = config(third, remote(url, false));
  REQUIRE(third.kiln({"cache", "key", "revoke", "ci"}).status == 0);
  const auto refused = third.kiln({"tune", "pull", last, "--device", device, "--json"}).json()["devices"][0];
  CHECK(refused["remotes"][0]["refused"]["revoked"] == 1);
  CHECK(refused["waiting"] == 0);
}

TEST_CASE("sharing: winners of a remote that cannot be read are not replaced") {
  const SharingUser writer;
  const TemporaryFolder share;
  const std::string device = "opengl:0";
  const std::string job =
      "[[job]]\nname = \"product\"\nop = \"gemm\"\nm = 64\nn = 128\nk = 96\n"
      "input = \"random:1\"\nweights = \"random:2\"\nverify = true\n";
  const auto config = [&](const std::string& accepted) -> std::string {
    return writer.folder.write(accepted + ".toml", "[[cache.remote]]\nurl = \"file://" + share.path().string() +
                                                       "\"\nwriters = [\"" + accepted +
                                                       "\"]\nmode = \"read_write\"\nsign_with = \"ci\"\n" + job);
  };
  const auto push = [&](const std::string& file) {
    return writer.kiln({"tune", "push", file, "--device", device, "--json"});
  };
  REQUIRE(writer.kiln({"cache", "key", "create", "ci"}).status == 0);
  const std::string reads = config("ci"), does_not = config("nobody");
  const std::string local = writer.folder.write("local.toml", job);
  REQUIRE(writer.kiln({"tune", local, "--device", device, "--budget", "3 s"}).status == 0);
  REQUIRE(push(reads).status == 0);
  std::vector<std::filesystem::path> objects;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(share.path())) {
    if (entry.is_regular_file()) objects.push_back(entry.path());
  }
  REQUIRE(objects.size() == 1);
  const std::string others = "of another machine";
  std::ofstream(objects[0]) << others;

  const Finished refused = push(does_not);
  INFO(refused.err);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Contains("nobody"));
  CHECK(refused.json()["devices"][0]["remotes"][0]["error"].is_string());
  CHECK(std::filesystem::file_size(objects[0]) == others.size());
  const SharingUser other;  // who has tuned nothing
  REQUIRE(other.kiln({"cache", "key", "create", "ci"}).status == 0);
  const Finished unread = other.kiln({"tune", "push", does_not, "--device", device, "--json"});
  CHECK(unread.status == 1);
  CHECK(unread.json()["devices"][0]["winners"] == 0);
  CHECK(unread.json()["devices"][0]["remotes"][0]["error"].is_string());
  // What is no object of an accepted key is replaced.
  CHECK(push(reads).status == 0);
  CHECK(std::filesystem::file_size(objects[0]) > others.size());
}

TEST_CASE("sharing: a layer from a read-only folder needs no compiler and copies nothing") {
  SharingUser writer, reader;
  REQUIRE(writer.kiln({"cache", "key", "create", "app"}).status == 0);
  REQUIRE(writer.run(writer.config("")).status == 0);
  const std::string layer = writer.folder / "layer";
  const Finished made = writer.kiln({"cache", "layer", "create", layer, "--sign-with", "app", "--json"});
  INFO(made.err);
  REQUIRE(made.status == 0);
  CHECK(made.json()["programs"] >= 1);
  REQUIRE(reader.kiln({"cache", "key", "trust", "app", writer.public_key()}).status == 0);
  const Finished loaded = reader.run(reader.config("[cache]\nlayers = [\"" + layer + "\"]\n"));
  INFO(loaded.err);
  REQUIRE(loaded.status == 0);
  CHECK(tier_of(loaded) == "layer");
  CHECK(loaded.json()["cache"]["builds"] == 0);
  CHECK(loaded.json()["cache"]["bytes_on_disk"] == 0);
  CHECK_THAT(reader.kiln({"run", reader.folder / "shared.toml", "--device", "opengl:0"}).out,
             Contains(" from layers, "));
}

TEST_CASE("sharing: a configuration cannot bring its own key, credentials or password") {
  SharingUser user;
  const auto check = [&](const std::string& text) {
    return user.kiln({"config", "check", user.folder.write("bad.toml", text)});
  };
  const std::string head = "[[cache.remote]]\nurl = \"https://cache.example/kiln\"\n";
  for (const std::string& line : std::vector<std::string>{
           "writers = [\"/tmp/key\"]", "writers = [\"../key\"]", "writers = [\"./key\"]",
           "credentials = \"/etc/shadow\"", "credentials = \"../x\"",
           "mode = \"read_write\"\nsign_with = \"/tmp/secret\"", "mode = \"read_write\"\nsign_with = \"a/b\""}) {
    INFO(line);
    const Finished checked = check(head + line + "\n");
    CHECK(checked.status == 2);
    CHECK_THAT(checked.err, Contains("bad.toml:") && Contains("not a path"));
  }
  const Finished password = check("[[cache.remote]]\nurl = \"https://user:secret@cache.example\"\n");
  CHECK(password.status == 2);
  CHECK_THAT(password.err, Contains("credentials") && !Contains("secret@"));
  CHECK_THAT(check("[cache]\nlayer_writers = [\"/tmp/key\"]\n").err, Contains("layer_writers"));
  CHECK_THAT(check("[cache]\ntrust_folders = [\"/tmp\"]\n").err, Contains("unknown key"));
  CHECK(check("[[cache.remote]]\nurl = \"ftp://x\"\n").status == 2);
  CHECK(check("[[cache.remote]]\nurl = \"https://x/../y\"\n").status == 2);
  CHECK(check("[[cache.remote]]\nmode = \"read\"\n").status == 2);
  CHECK(check(head + "mode = \"write\"\n").status == 2);
  CHECK(check(head + "mode = \"read_write\"\n").status == 2);
  CHECK(check(head + "sign_with = \"ci\"\n").status == 2);
  CHECK_THAT(check(head + "writer = [\"ci\"]\n").err, Contains("nearest: writers"));
  CHECK(check("[cache]\nremote = \"https://x\"\n").status == 2);
  CHECK(user.kiln({"config", "show", "--set", "cache.remote.url=https://x"}).status == 2);
}

TEST_CASE("sharing: keys are listed, expire and are revoked") {
  SharingUser user;
  CHECK_THAT(user.kiln({"cache", "key", "list"}).out, Contains("no key is trusted"));
  const std::string digits(64, 'a');
  REQUIRE(user.kiln({"cache", "key", "trust", "old", digits, "--until", "2020-01-01"}).status == 0);
  const auto listed = user.kiln({"cache", "key", "list", "--json"}).json();
  CHECK(listed["keys"][0]["state"] == "expired");
  CHECK(listed["keys"][0]["until"] == "2020-01-01");
  CHECK(user.kiln({"cache", "key", "revoke", "old"}).status == 0);
  CHECK(user.kiln({"cache", "key", "list", "--json"}).json()["keys"][0]["state"] == "revoked");
  CHECK(user.kiln({"cache", "key", "revoke", "none"}).status == 1);
  CHECK(user.kiln({"cache", "key", "trust", "old", digits}).status == 2);
  CHECK(user.kiln({"cache", "key", "trust", "new", "not a key"}).status == 2);
  CHECK(user.kiln({"cache", "key", "create", "../x"}).status == 2);
  CHECK(user.kiln({"cache", "key", "create", "x", "--until", "soon"}).status == 2);
}

TEST_CASE("sharing: push without a remote, and layer create without a key, say what is missing") {
  SharingUser user;
  const Finished push = user.kiln({"cache", "push"});
  CHECK(push.status == 2);
  CHECK_THAT(push.err, Contains("read_write"));
  CHECK(user.kiln({"cache", "layer", "create", user.folder / "layer"}).status == 2);
  const Finished layer = user.kiln({"cache", "layer", "create", user.folder / "layer", "--sign-with", "none"});
  CHECK(layer.status == 1);
  CHECK_THAT(layer.err, Contains("kiln cache key create none"));
}

TEST_CASE("sharing: programs baked without a card run on it, and on the drivers of this machine, with no build") {
  const SharingUser builder, user;
  REQUIRE(builder.kiln({"cache", "key", "create", "app"}).status == 0);
  const std::string plugins = "[plugins]\nload = [\"opengl\", \"cpu\", \"dynamic_shaders\", \"amdgpu_pm4\"]\n";
  const std::string kernel =
      "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void twice(global const float* x, global float* y) {\n"
      "  y[get_global_id(0)] = 2 * x[get_global_id(0)];\n}\n";
  const std::string jobs = conv_3x3("conv") +
                           "[[job]]\nname = \"twice\"\nop = \"kernel\"\nsource = \"twice.cl\"\nentry = \"twice\"\n"
                           "grid = [2]\nbindings = [ { input = \"random:1\", shape = [128] }, "
                           "{ output = \"y.npy\", shape = [128] } ]\n";
  builder.folder.write("twice.cl", kernel);
  user.folder.write("twice.cl", kernel);
  const std::string layer = builder.folder / "a layer";
  const std::string config = builder.folder.write("bake.toml", plugins + jobs);
  const Finished baked = builder.kiln({"cache", "bake", config, "--for", "gfx1100", "--for", "gfx1030", "--for",
                                       "opengl:0", "--sign-with", "app", "--output", layer, "--json"});
  INFO(baked.err << baked.out);
  if (baked.status != 0 && baked.err.find("no compiler") != std::string::npos) {
    WARN("skipped: no compiler for AMD cards");
    return;
  }
  REQUIRE(baked.status == 0);
  const auto targets = baked.json()["targets"];
  REQUIRE(targets.size() == 3);
  CHECK(targets[0]["programs"] >= 2);  // of the convolution and of the kernel
  CHECK(targets[0]["unfitted"].empty());
  CHECK(targets[2]["unfitted"] == nlohmann::json::array({"twice"}));
  CHECK(baked.json()["layer"]["programs"].get<std::size_t>() ==
        targets[0]["keys"].size() + targets[1]["keys"].size() + targets[2]["keys"].size());

  REQUIRE(user.kiln({"cache", "key", "trust", "app", builder.public_key()}).status == 0);
  const std::string used = user.folder.write("use.toml", plugins + "[cache]\nlayers = [\"" + layer + "\"]\n" + jobs);
  for (const char* chip : {"gfx1100", "gfx1030"}) {
    REQUIRE(user.kiln({"cache", "clear"}).status == 0);
    const Finished ran = user.kiln({"simulate", "--target", chip, "--", KILN_BINARY_DIR "/bin/kiln", "run", used,
                                    "--json", "--device", "amdgpu:0"});
    INFO(chip << ": " << ran.err << ran.out);
    REQUIRE(ran.status == 0);
    CHECK(ran.json()["cache"]["builds"] == 0);
    const auto report = ran.json();
    for (const auto& job : report["jobs"]) CHECK(job["program"]["tier"] == "layer");
  }
  // Where the simulated card is not, llvmpipe runs what it can.
  const std::string conv =
      user.folder.write("conv.toml", plugins + "[cache]\nlayers = [\"" + layer + "\"]\n" + conv_3x3("conv"));
  const Finished here = user.run(conv);
  INFO(here.err);
  REQUIRE(here.status == 0);
  CHECK(tier_of(here) == "layer");
  CHECK(here.json()["cache"]["builds"] == 0);

  // Baked again where a layer holds the programs already.
  const Finished again = user.kiln(
      {"cache", "bake", conv, "--for", "opengl:0", "--sign-with", "own", "--output", user.folder / "again", "--json"});
  CHECK(again.status == 1);
  CHECK_THAT(again.err, Contains("signing key 'own': not in keys.d"));
  REQUIRE(user.kiln({"cache", "key", "create", "own"}).status == 0);
  const Finished copied = user.kiln(
      {"cache", "bake", conv, "--for", "opengl:0", "--sign-with", "own", "--output", user.folder / "again", "--json"});
  INFO(copied.err << copied.out);
  REQUIRE(copied.status == 0);
  CHECK(copied.json()["layer"]["programs"] == targets[2]["keys"].size());
}

TEST_CASE("sharing: where no program fits a target no layer is baked, which is a failure") {
  const SharingUser builder;
  REQUIRE(builder.kiln({"cache", "key", "create", "app"}).status == 0);
  builder.folder.write("twice.cl",
                       "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void twice(global const float* x, "
                       "global float* y) { y[get_global_id(0)] = 2 * x[get_global_id(0)]; }\n");
  const std::string config = builder.folder.write(
      "bake.toml",
      "[plugins]\nload = [\"opengl\", \"cpu\", \"dynamic_shaders\"]\n"
      "[[job]]\nname = \"twice\"\nop = \"kernel\"\nsource = \"twice.cl\"\nentry = \"twice\"\n"
      "grid = [2]\nbindings = [ { input = \"random:1\", shape = [128] }, { output = \"y.npy\", shape = [128] } ]\n");
  const Finished baked = builder.kiln({"cache", "bake", config, "--for", "opengl:0", "--sign-with", "app", "--output",
                                       builder.folder / "layer", "--json"});
  INFO(baked.err << baked.out);
  CHECK(baked.status == 1);
  CHECK_THAT(baked.err, Contains("no layer is written"));
  CHECK(baked.json()["targets"][0]["unfitted"] == nlohmann::json::array({"twice"}));
  CHECK(baked.json()["layer"].is_null());
  const Finished told = builder.kiln(
      {"cache", "bake", config, "--for", "opengl:0", "--sign-with", "app", "--output", builder.folder / "layer"});
  INFO(told.err);
  CHECK(told.status == 1);
  CHECK(told.out ==
        "opengl:0: 0 programs, 0 built now\n"
        "  job 'twice' has no program for this target: the source can only be built on the device\n");
  CHECK_FALSE(std::filesystem::exists(builder.folder / "layer"));
}

TEST_CASE("sharing: text output of cache bake ends with the layer") {
  const SharingUser builder;
  REQUIRE(builder.kiln({"cache", "key", "create", "app"}).status == 0);
  const std::string layer = builder.folder / "layer";
  const std::string config =
      builder.folder.write("bake.toml", "[plugins]\nload = [\"opengl\", \"dynamic_shaders\"]\n" + tiny_gemm("product"));
  const Finished baked =
      builder.kiln({"cache", "bake", config, "--for", "opengl:0", "--sign-with", "app", "--output", layer});
  INFO(baked.err << baked.out);
  REQUIRE(baked.status == 0);
  const std::size_t last = baked.out.find(layer + ": ");
  REQUIRE(last != std::string::npos);
  CHECK_THAT(baked.out.substr(0, last), Catch::Matches("opengl:0: [1-9][0-9]* programs?, [1-9][0-9]* built now\n"));
  CHECK_THAT(baked.out.substr(last + layer.size()), Catch::Matches(": [1-9][0-9]* programs?, [0-9.]+ ([KM]i)?B\n"));
}

TEST_CASE("sharing: SPIR-V and the driver's files of a Vulkan device are baked, and load with no build") {
  const SharingUser builder, user;
  REQUIRE(builder.kiln({"cache", "key", "create", "app"}).status == 0);
  const std::string plugins = "[plugins]\nload = [\"vulkan\", \"dynamic_shaders\"]\n";
  const std::string layer = builder.folder / "layer";
  const Finished baked = builder.kiln({"cache", "bake", builder.folder.write("bake.toml", plugins + conv_3x3("conv")),
                                       "--for", "vulkan:0", "--sign-with", "app", "--output", layer, "--json"});
  INFO(baked.err << baked.out);
  if (baked.err.find("no device has this id (devices here: none)") != std::string::npos) {
    WARN("skipped: no Vulkan device");
    return;
  }
  REQUIRE(baked.status == 0);
  CHECK(baked.json()["targets"][0]["programs"] == baked.json()["layer"]["programs"]);

  REQUIRE(user.kiln({"cache", "key", "trust", "app", builder.public_key()}).status == 0);
  const Finished ran = user.kiln(
      {"run", user.folder.write("use.toml", plugins + "[cache]\nlayers = [\"" + layer + "\"]\n" + conv_3x3("conv")),
       "--json", "--verify", "--device", "vulkan:0"});
  INFO(ran.err << ran.out);
  REQUIRE(ran.status == 0);
  CHECK(tier_of(ran) == "layer");
  CHECK(ran.json()["cache"]["builds"] == 0);
  CHECK(ran.json()["jobs"][0]["verified"] == true);
}

TEST_CASE("sharing: what cannot be baked is an error that names what can") {
  const SharingUser builder;
  REQUIRE(builder.kiln({"cache", "key", "create", "app"}).status == 0);
  const std::string config = builder.folder.write(
      "bake.toml", "[plugins]\nload = [\"opengl\", \"dynamic_shaders\", \"amdgpu_pm4\"]\n" + conv_3x3("conv"));
  const auto bake = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"cache", "bake", config};
    words.insert(words.end(), more.begin(), more.end());
    return builder.kiln(std::move(words));
  };
  const std::string layer = builder.folder / "layer";
  for (const char* target : {"gfx1201", "gfx906", "nonsense", "opengl:7", "cpu", ""}) {
    const Finished refused = bake({"--for", target, "--sign-with", "app", "--output", layer});
    INFO(target << ": " << refused.err);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err,
               Contains("--for " + std::string(target) + ": no device has this id (devices here: opengl:0)") &&
                   Contains("gfx1030") && Contains("gfx1103"));
    CHECK_FALSE(std::filesystem::exists(layer));
  }
  CHECK_THAT(bake({"--sign-with", "app", "--output", layer}).err, Contains("no --for"));
  CHECK_THAT(bake({"--for", "gfx1100", "--output", layer}).err, Contains("no --sign-with"));
  CHECK_THAT(bake({"--for", "gfx1100", "--sign-with", "app"}).err, Contains("no --output"));
  CHECK_THAT(bake({"--for", "opengl:0", "--sign-with", "other", "--output", layer}).err,
             Contains("signing key 'other': not in keys.d"));
}

}  // namespace
