// An executor whose operations end when a test says so.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/executor.h"

namespace ferry::engine {

class RecordingExecutor final : public Executor {
 public:
  struct Begun {
    Operation operation;
    Token token;
  };

  ErrorCode Begin(const Operation& operation, Token token) override {
    if (refusal != ErrorCode::kOk) {
      return refusal;
    }
    if (under_way.size() >= room) {
      return ErrorCode::kWouldBlock;
    }
    under_way.push_back({operation, token});
    begun.push_back(operation.body);
    return ErrorCode::kOk;
  }
  void Renounce(const Operation& operation, ErrorCode error) override {
    renounced.push_back({operation.remote_done, error});
  }
  void Abandon(const Operation& operation, Token) override { abandoned.push_back(operation.body); }

  // Takes the i-th operation under way, which is about to end.
  Token Take(size_t i) {
    const Token token = under_way[i].token;
    under_way.erase(under_way.begin() + static_cast<ptrdiff_t>(i));
    return token;
  }

  struct Renounced {
    uint64_t remote_done;
    ErrorCode error;
    bool operator==(const Renounced&) const = default;
  };

  size_t room = SIZE_MAX;
  ErrorCode refusal = ErrorCode::kOk;  // the answer of Begin, if not kOk
  std::vector<Begun> under_way;
  std::vector<uint64_t> begun;  // bodies, in order
  std::vector<Renounced> renounced;
  std::vector<uint64_t> abandoned;
};

}  // namespace ferry::engine
