#include "redis_store.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>

namespace kiln::remote_redis {
namespace {

constexpr std::size_t names_together = 3;  // of one MGET, and so between two reports of progress
static_assert(names_together * (most_object_bytes + 32) < ReplyLimits{}.bytes, "objects of the largest size fit");
constexpr std::string_view life_of_object = "2592000";  // 30 days in seconds
// Only the holder may end or prolong its lease.
constexpr std::string_view release_script =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
constexpr std::string_view renew_script =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

std::string key_of_name(const std::string& name) { return "kiln:" + name; }

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Status unexpected(const Reply& reply, const char* what) {
  if (reply.kind == ReplyKind::error) return unavailable(std::string("Redis: ") + what + ": " + reply.text);
  return unavailable(std::string("Redis: ") + what + ": unexpected type of reply");
}

std::string text_of_number(std::int64_t number) { return std::to_string(number); }

}  // namespace

RedisStore::RedisStore(ServerAddress address, std::map<std::string, std::string> credentials)
    : address_(std::move(address)), credentials_(std::move(credentials)) {}

std::unique_ptr<Connection> RedisStore::take_idle() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

Status RedisStore::run(std::span<const Connection::Command> commands, const RemoteLimits& limits,
                       const Connection::OnReply& on_reply) {
  bool has_replied = false;
  const auto counted = [&](std::size_t command, Reply reply) {
    has_replied = true;
    return on_reply(command, std::move(reply));
  };
  const auto run_on = [&](std::unique_ptr<Connection> connection) {
    Status status = connection->run(commands, limits, counted);
    const std::lock_guard lock(mutex_);
    if (status.ok()) idle_.push_back(std::move(connection));
    return status;
  };
  if (auto connection = take_idle()) {
    Status status = run_on(std::move(connection));
    // The server may have closed an idle connection, or was started again: the others are no better.
    if (status.code != StatusCode::unavailable || has_replied) return status;
    const std::lock_guard lock(mutex_);
    idle_.clear();
  }
  auto connection = Connection::open(address_, credentials_, limits);
  if (!connection) return std::move(connection).error();
  return run_on(std::move(*connection));
}

Result<Reply> RedisStore::run_one(const Connection::Command& command, const RemoteLimits& limits) {
  Reply answer;
  const Status status = run(std::span(&command, 1), limits, [&](std::size_t, Reply reply) {
    answer = std::move(reply);
    return ok_status();
  });
  if (!status.ok()) return status;
  return answer;
}

Result<std::optional<std::vector<std::byte>>> RedisStore::get(const std::string& name,
                                                              const RemoteLimits& limits) noexcept try {
  const std::string key = key_of_name(name);
  auto reply = run_one({"GET", key}, limits);
  if (!reply) return std::move(reply).error();
  if (reply->kind == ReplyKind::null) return std::optional<std::vector<std::byte>>();
  if (reply->kind != ReplyKind::bulk) return unexpected(*reply, "GET");
  if (reply->text.size() > limits.most_bytes) {
    return unavailable("Redis: object has " + std::to_string(reply->text.size()) + " bytes, expected at most " +
                       std::to_string(limits.most_bytes));
  }
  return std::optional(bytes_of(reply->text));
} catch (...) {
  return caught();
}

Status RedisStore::get_many(std::span<const std::string> names, const RemoteLimits& limits,
                            const OnObject& on_object) noexcept try {
  std::vector<std::string> keys;
  keys.reserve(names.size());
  for (const std::string& name : names) keys.push_back(key_of_name(name));
  std::vector<Connection::Command> commands;
  for (std::size_t at = 0; at < keys.size(); at += names_together) {
    Connection::Command command{"MGET"};
    for (std::size_t i = at; i < std::min(at + names_together, keys.size()); ++i) command.push_back(keys[i]);
    commands.push_back(std::move(command));
  }
  return run(commands, limits, [&](std::size_t command, const Reply& reply) {
    if (reply.kind != ReplyKind::array || reply.items.size() + 1 != commands[command].size()) {
      return unexpected(reply, "MGET");
    }
    for (std::size_t i = 0; i < reply.items.size(); ++i) {
      const Reply& item = reply.items[i];
      if (item.kind != ReplyKind::bulk || item.text.size() > limits.most_bytes) continue;
      on_object(command * names_together + i, bytes_of(item.text));
    }
    return ok_status();
  });
} catch (...) {
  return caught();
}

Status RedisStore::put(const std::string& name, std::span<const std::byte> bytes, const RemoteLimits& limits) noexcept
    try {
  const std::string key = key_of_name(name);
  const std::string_view value{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const auto reply = run_one({"SET", key, value, "EX", life_of_object}, limits);
  if (!reply) return reply.error();
  if (reply->kind == ReplyKind::error) {  // such as NOPERM or OOM
    return unsupported("Redis: SET: " + reply->text);
  }
  return reply->kind == ReplyKind::text ? ok_status() : unexpected(*reply, "SET");
} catch (...) {
  return caught();
}

Result<std::optional<RemoteIndex>> RedisStore::index(const std::string& folder, const RemoteLimits& limits) noexcept
    try {
  const std::string key = key_of_name(remote_index_name(folder));
  const auto reply = run_one({"HGETALL", key}, limits);
  if (!reply) return reply.error();
  if (reply->kind != ReplyKind::array) return unexpected(*reply, "HGETALL");
  if (reply->items.empty()) return std::optional<RemoteIndex>();
  RemoteIndex index;
  for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
    const std::string& digest = reply->items[i].text;
    const std::string& number = reply->items[i + 1].text;
    RemoteIndexEntry entry;
    if (digest.size() != sizeof entry.key.bytes) continue;
    std::memcpy(entry.key.bytes.data(), digest.data(), digest.size());
    if (std::from_chars(number.data(), number.data() + number.size(), entry.build_ns).ec != std::errc()) continue;
    index.push_back(entry);
  }
  return std::optional(merged_index({}, index));
} catch (...) {
  return caught();
}

Status RedisStore::add_to_index(const std::string& folder, const RemoteIndex& more, const RemoteLimits& limits) noexcept
    try {
  if (more.empty()) return {};
  const std::string key = key_of_name(remote_index_name(folder));
  std::vector<std::string> words;
  words.reserve(more.size() * 2);
  for (const RemoteIndexEntry& entry : more) {
    words.emplace_back(reinterpret_cast<const char*>(entry.key.bytes.data()), entry.key.bytes.size());
    words.push_back(std::to_string(entry.build_ns));
  }
  Connection::Command command{"HSET", key};
  command.insert(command.end(), words.begin(), words.end());
  const auto reply = run_one(command, limits);
  if (!reply) return reply.error();
  return reply->kind == ReplyKind::integer ? ok_status() : unexpected(*reply, "HSET");
} catch (...) {
  return caught();
}

Result<bool> RedisStore::acquire(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                                 const RemoteLimits& limits) noexcept try {
  const std::string key = key_of_name(name), ms = text_of_number(life.count());
  const auto reply = run_one({"SET", key, token, "NX", "PX", ms}, limits);
  if (!reply) return reply.error();
  if (reply->kind == ReplyKind::text) return true;
  if (reply->kind == ReplyKind::null) return false;
  return unexpected(*reply, "SET NX");
} catch (...) {
  return caught();
}

Result<bool> RedisStore::renew(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                               const RemoteLimits& limits) noexcept try {
  const std::string key = key_of_name(name), ms = text_of_number(life.count());
  const auto reply = run_one({"EVAL", renew_script, "1", key, token, ms}, limits);
  if (!reply) return reply.error();
  if (reply->kind != ReplyKind::integer) return unexpected(*reply, "EVAL");
  return reply->integer == 1;
} catch (...) {
  return caught();
}

Status RedisStore::release(const std::string& name, const std::string& token, const RemoteLimits& limits) noexcept try {
  const std::string key = key_of_name(name);
  const auto reply = run_one({"EVAL", release_script, "1", key, token}, limits);
  if (!reply) return reply.error();
  return reply->kind == ReplyKind::integer ? ok_status() : unexpected(*reply, "EVAL");
} catch (...) {
  return caught();
}

Result<std::unique_ptr<RemoteStore>> open_redis_store(const RemoteContext& context) {
  const auto address = address_of(context.url);
  if (!address) return address.error();
  return std::unique_ptr<RemoteStore>(std::make_unique<RedisStore>(*address, context.credentials));
}

}  // namespace kiln::remote_redis
