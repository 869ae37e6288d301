// The recipes of docs/sharing-a-cache.md as they are written: servers, files and commands on loopback and in folders of
// the test. The reader of each loads its program without a build.
#include "host/kiln_process.hpp"
#include "host/sample_jobs.hpp"
#include "remote/servers.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// One indented block of a recipe, and the line before it.
struct Block {
  std::string where;  // "server", "builder", "reader"
  std::string file;   // empty: commands
  std::string text;
};

std::vector<Block> blocks_of(const std::string& recipe) {
  std::ifstream page(std::string(KILN_SOURCE_DIR) + "/docs/sharing-a-cache.md");
  std::vector<Block> blocks;
  Block next;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("#")) inside = line == "### " + recipe;
    if (!inside) continue;
    std::smatch said;
    if (line.starts_with("    ")) {
      next.text += line.substr(4) + "\n";
      continue;
    }
    if (!next.text.empty()) blocks.push_back(std::exchange(next, {}));
    if (!std::regex_search(line, said, std::regex("^On the (server|builder|reader)[^`]*(`([^`]+)`)?"))) continue;
    next = {said[1], said[3], {}};
    if (next.where == "builder" && next.file.find('/') == std::string::npos && next.file != "jobs.toml") next.file = {};
  }
  return blocks;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// Runs a recipe. `server`: starts the server of the text, whose files are in its folder.
class Recipe {
 public:
  using Words = std::vector<std::pair<std::string, std::string>>;

  // words: what the recipe names, and what stands for it here.
  Recipe(const std::string& name, Words words) : blocks_(blocks_of(name)), words_(std::move(words)) {
    REQUIRE(blocks_.size() >= 3);
    for (const Block& block : blocks_) {
      INFO("in the page, a line that begins with \"On the …\" must stand before:\n" << block.text);
      REQUIRE(!block.where.empty());
    }
    words_.emplace_back("/usr/share/app/kiln", (layers_ / "layer").string());
    words_.emplace_back(" --system", "");
  }

  // The text of the server's configuration.
  std::string server_text() const {
    for (const Block& block : blocks_) {
      if (block.where == "server") return here(block.text, "");
    }
    return {};
  }

  void run() {
    for (const Block& block : blocks_) {
      if (block.where == "server") continue;
      const fs::path machine = machines_ / block.where;
      if (fs::create_directories(machine)) put_jobs(machine, "");
      const std::string text = here(block.text, (machine / "config/kiln/").string());
      if (block.file == "jobs.toml") {
        put_jobs(machine, text);
      } else if (!block.file.empty()) {
        put_secret(here(block.file, (machine / "config/kiln/").string()), text);
      } else {
        std::istringstream commands(text);
        for (std::string command; std::getline(commands, command);) type(block.where, machine, command);
      }
    }
    CHECK(tiers_["builder"].size() <= 1);
    REQUIRE(tiers_["reader"].size() == 1);
  }
  // Of the reader's job.
  std::string tier() { return tiers_["reader"].front(); }

 private:
  std::string here(std::string text, const std::string& config) const {
    for (const auto& [from, to] : words_) replace_all(text, from, to);
    replace_all(text, "/etc/kiln/", config);
    replace_all(text, "…", public_key_);
    return text;
  }

  static void put_jobs(const fs::path& machine, const std::string& head) {
    std::ofstream(machine / "jobs.toml") << head << conv_3x3("recipe") << "device = \"opengl:0\"\n";
  }

  static void put_secret(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    for (fs::path at = file.parent_path(); at.filename() != "config"; at = at.parent_path()) {
      fs::permissions(at, fs::perms::owner_all);
    }
    std::ofstream(file) << text;
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  }

  void type(const std::string& where, const fs::path& machine, const std::string& command) {
    REQUIRE(command.starts_with("$ kiln "));
    std::istringstream typed(command.substr(7));
    std::vector<std::string> words;
    for (std::string word; typed >> word;) words.push_back(word);
    const bool is_run = words.front() == "run";
    if (is_run) words.emplace_back("--json");
    const Finished done = run_kiln(words, {.environment = {{"KILN_CACHE_DIR", machine / "cache"},
                                                           {"KILN_KEY_FILE", machine / "state/key"},
                                                           {"XDG_CONFIG_HOME", machine / "config"}},
                                           .folder = machine});
    INFO(where << ": " << command << "\n" << done.err << done.out);
    REQUIRE(done.status == 0);
    if (is_run) tiers_[where].push_back(done.json()["jobs"][0]["program"]["tier"]);
    std::smatch key;
    if (std::regex_search(done.out, key, std::regex("created key .*: ([0-9a-f]{64})"))) public_key_ = key[1];
  }

  const std::vector<Block> blocks_;
  Words words_;
  const TemporaryFolder machines_{"machines"}, layers_{"layers"};
  std::string public_key_;
  std::map<std::string, std::vector<std::string>> tiers_;  // of each machine's runs
};

// A server with the configuration of a recipe, and certificates for localhost.
class RecipeServer : public ServerProcess {
 public:
  RecipeServer() { make_certificates(folder()); }
  Recipe::Words words() const {
    const std::string at = folder().string() + "/", number = std::to_string(port());
    return {{"cache.example:6379", "localhost:" + number},
            {"https://cache.example", "https://localhost:" + number},
            {"listen 443 ssl", "listen 127.0.0.1:" + number + " ssl"},
            {"cache.example", "localhost"},
            {"tls-port 6379", "bind 127.0.0.1\ntls-port " + number},
            {"/etc/redis/", at},
            {"/etc/nginx/", at},
            {"root /srv", "root " + at + "srv"},
            {"/etc/kiln/ca.crt", at + "ca.crt"}};
  }
  void start_redis(const std::string& text) {
    std::ofstream(folder() / "kiln.conf") << text << "save \"\"\ndir " << folder().string() << "\n";
    start(program_named("redis-server"), {(folder() / "kiln.conf").string()}, port());
  }
  void start_nginx(const std::string& text) {
    const std::string at = folder().string();
    fs::create_directories(folder() / "srv/kiln");
    run_shell("printf 'writer:%s\\n' \"$(openssl passwd -apr1 WRITE-PASSWORD)\" > " + at + "/kiln.htpasswd");
    std::ofstream(folder() / "nginx.conf")
        << "daemon off; master_process off; pid " << at << "/pid; error_log " << at << "/error.log;\nevents {}\n"
        << "http { access_log off; client_body_temp_path " << at << "/body; proxy_temp_path " << at
        << "/proxy; fastcgi_temp_path " << at << "/fastcgi; uwsgi_temp_path " << at << "/uwsgi; scgi_temp_path " << at
        << "/scgi;\n"
        << text << "}\n";
    start(program_named("nginx"), {"-c", at + "/nginx.conf", "-p", at, "-e", at + "/error.log"}, port());
  }
};

}  // namespace

TEST_CASE("recipes: a CI farm with Redis") {
  RecipeServer server;
  Recipe recipe("CI farm with Redis", server.words());
  server.start_redis(recipe.server_text());
  recipe.run();
  CHECK(recipe.tier() == "disk");  // pulled, not built
}

TEST_CASE("recipes: a web server with TLS") {
  RecipeServer server;
  Recipe recipe("Web server with TLS", server.words());
  server.start_nginx(recipe.server_text());
  recipe.run();
  CHECK(recipe.tier() == "disk");  // pulled, not built
}

TEST_CASE("recipes: a container image with a read-only root") {
  Recipe recipe("Container image with a read-only root", {});
  recipe.run();
  CHECK(recipe.tier() == "layer");
}

}  // namespace kiln::test
