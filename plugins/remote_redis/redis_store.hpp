// RedisStore: a RemoteStore in Redis, with leases.
//
//   kiln:FOLDER/DIGEST          string: an object; expires 30 days after it was written
//   kiln:FOLDER/index           hash: 32 bytes of a digest to the build time in nanoseconds, as decimal digits
//   kiln:FOLDER/DIGEST.lease    string: token of the holder; expires with the lease
//
// Thread-safety: as RemoteStore; each call uses a connection of its own from a pool. Ownership: owns the connections.
#pragma once

#include "connection.hpp"

#include <kiln/remote_store.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::remote_redis {

class RedisStore final : public RemoteStore, public RemoteLeases {
 public:
  RedisStore(ServerAddress address, std::map<std::string, std::string> credentials);

  Result<std::optional<std::vector<std::byte>>> get(const std::string& name,
                                                    const RemoteLimits& limits) noexcept override;
  Status get_many(std::span<const std::string> names, const RemoteLimits& limits,
                  const OnObject& on_object) noexcept override;
  Status put(const std::string& name, std::span<const std::byte> bytes, const RemoteLimits& limits) noexcept override;
  Result<std::optional<RemoteIndex>> index(const std::string& folder, const RemoteLimits& limits) noexcept override;
  Status add_to_index(const std::string& folder, const RemoteIndex& more, const RemoteLimits& limits) noexcept override;

  Result<bool> acquire(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                       const RemoteLimits& limits) noexcept override;
  Result<bool> renew(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                     const RemoteLimits& limits) noexcept override;
  Status release(const std::string& name, const std::string& token, const RemoteLimits& limits) noexcept override;

 private:
  // Runs the commands on a connection of the pool. One that the server has closed before it replied is replaced once.
  Status run(std::span<const Connection::Command> commands, const RemoteLimits& limits,
             const Connection::OnReply& on_reply);
  Result<Reply> run_one(const Connection::Command& command, const RemoteLimits& limits);
  std::unique_ptr<Connection> take_idle();

  const ServerAddress address_;
  const std::map<std::string, std::string> credentials_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

Result<std::unique_ptr<RemoteStore>> open_redis_store(const RemoteContext& context);

}  // namespace kiln::remote_redis
