// Shows a daemon's answers as JSON and as text for people. Pure functions; any thread.
//
// JSON has the names of proto/control.proto and plain numbers; text has tables, with units. Those
// of sessions, interfaces and devices are as wide as the terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/control.pb.h"
#include "tools/display/table.h"

namespace ferry::tools {

struct View {
  nlohmann::ordered_json json;
  std::string text;
};

View MakeView(const control::StatusReply& reply, const Terminal& terminal = {});
// "MPI_Barrier on world, number 7 (12 s)", of each call; empty: none of its threads waits in one.
std::string CallsText(const google::protobuf::RepeatedPtrField<control::RankCall>& calls);
// As `--json` has them.
nlohmann::ordered_json CallsJson(
    const google::protobuf::RepeatedPtrField<control::RankCall>& calls);

View MakeView(const control::SessionsReply& reply, const Terminal& terminal = {});
View MakeView(const control::CountersReply& reply, const Terminal& terminal = {});
View MakeView(const control::LinksReply& reply, const Terminal& terminal = {});
View MakeView(const control::NicsReply& reply, const Terminal& terminal = {});
View MakeView(const control::GpusReply& reply, const Terminal& terminal = {});
View MakeView(const control::FaultsReply& reply, const Terminal& terminal = {});

}  // namespace ferry::tools
