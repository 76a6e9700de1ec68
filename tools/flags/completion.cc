#include "tools/flags/completion.h"

#include <algorithm>

namespace ferry::tools {
namespace {

// In single quotes, for every shell of these.
std::string Quoted(std::string_view text, std::string_view also_escaped = "") {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += also_escaped.find(c) == also_escaped.npos ? "" : "\\";
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string FlagNames(const CommandLine& line, const std::string& command) {
  std::string names;
  for (const CompletionFlag& flag : line.flags) {
    if (flag.command == command) {
      names += (names.empty() ? "" : " ") + flag.name;
    }
  }
  return names;
}

// "-n | -np" of all flags that so many words follow.
std::string Pattern(const CommandLine& line, int values) {
  std::string names;
  for (const CompletionFlag& flag : line.flags) {
    if (flag.values == values) {
      names += (names.empty() ? "" : " | ") + flag.name;
    }
  }
  return names;
}

// Walks over the words before the one to be completed: bash leaves that to us.
std::string ForBash(const CommandLine& line) {
  std::string script = "# bash completion of " + line.tool + ", by " + line.tool +
                       " --completion bash\n_" + line.tool +
                       "() {\n"
                       "  local word=${COMP_WORDS[COMP_CWORD]} command='' flags i=1\n"
                       "  COMPREPLY=()\n"
                       "  while ((i < COMP_CWORD)); do\n"
                       "    case ${COMP_WORDS[i]} in\n";
  for (int values = 1; values <= 2; ++values) {
    if (const std::string pattern = Pattern(line, values); !pattern.empty()) {
      script += "      " + pattern + ") ((i += " + std::to_string(values) + ")) ;;\n";
    }
  }
  script += line.commands.empty()
                ? "      -*) ;;\n      *) return ;; # the program's own words\n"
                : "      -*) ;;\n      *) command=${command:-${COMP_WORDS[i]}} ;;\n";
  script +=
      "    esac\n"
      "    ((i += 1))\n"
      "  done\n"
      "  ((i == COMP_CWORD)) || return # the value of a flag\n"
      "  flags=" +
      Quoted(FlagNames(line, "")) + "\n";
  std::string names;
  if (!line.commands.empty()) {
    script += "  case $command in\n";
    for (const CompletionCommand& command : line.commands) {
      names += (names.empty() ? "" : " ") + command.name;
      if (const std::string own = FlagNames(line, command.name); !own.empty()) {
        script += "    " + command.name + ") flags+=" + Quoted(" " + own) + " ;;\n";
      }
    }
    script += "  esac\n";
  }
  script += "  if [[ $word == -* ]]; then\n    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n";
  script += line.commands.empty() ? "  else\n    COMPREPLY=($(compgen -c -- \"$word\"))\n  fi\n}\n"
                                  : "  elif [[ -z $command ]]; then\n    COMPREPLY=($(compgen -W " +
                                        Quoted(names) + " -- \"$word\"))\n  fi\n}\n";
  return script + "complete -o default -F _" + line.tool + " " + line.tool + "\n";
}

std::string Described(const std::string& name, const std::string& help) {
  return "  " + Quoted(name, ":").substr(0, Quoted(name, ":").size() - 1) + ":" +
         Quoted(help).substr(1) + "\n";
}

// The flags of `command`; empty: of all commands.
std::string ZshFlags(const CommandLine& line, const std::string& command) {
  std::string flags;
  for (const CompletionFlag& flag : line.flags) {
    if (flag.command == command) {
      flags += Described(flag.name, flag.help);
    }
  }
  return flags;
}

std::string ForZsh(const CommandLine& line) {
  std::string script = "#compdef " + line.tool + "\n# by " + line.tool +
                       " --completion zsh\nlocal -a flags commands\nlocal word command\nflags=(\n" +
                       ZshFlags(line, "") + ")\n";
  if (line.commands.empty()) {
    return script +
           "if [[ $PREFIX == -* ]]; then\n  _describe -o flag flags\n"
           "else\n  _alternative 'programs:program:_command_names -e' 'files:file:_files'\nfi\n";
  }
  std::string cases;
  script += "commands=(\n";
  for (const CompletionCommand& command : line.commands) {
    script += Described(command.name, command.help);
    cases += "    " + command.name + ") command=$word; flags+=(\n" + ZshFlags(line, command.name) +
             "    );;\n";
  }
  return script + ")\nfor word in \"${(@)words[2,CURRENT-1]}\"; do\n  case $word in\n" + cases +
         "  esac\ndone\n"
         "if [[ $PREFIX == -* ]]; then\n  _describe -o flag flags\n"
         "elif [[ -z $command ]]; then\n  _describe command commands\n"
         "else\n  _files\nfi\n";
}

std::string ForFish(const CommandLine& line) {
  const std::string start = "complete -c " + line.tool;
  std::string script =
      "# fish completion of " + line.tool + ", by " + line.tool + " --completion fish\n";
  for (const CompletionCommand& command : line.commands) {
    script += start + " -n __fish_use_subcommand -f -a " + command.name + " -d " +
              Quoted(command.help, "\\") + "\n";
  }
  for (const CompletionFlag& flag : line.flags) {
    const bool two = flag.name.starts_with("--");
    const std::string name = flag.name.substr(two ? 2 : 1);
    script += start;
    if (!flag.command.empty()) {
      script += " -n '__fish_seen_subcommand_from " + flag.command + "'";
    }
    script += (two                ? " -l "
               : name.size() == 1 ? " -s "
                                  : " -o ") +
              name + (flag.values > 0 ? " -r" : "") + " -d " + Quoted(flag.help, "\\") + "\n";
  }
  return script;
}

}  // namespace

StatusOr<std::string> CompletionScript(const CommandLine& line, std::string_view shell) {
  return shell == "bash"  ? StatusOr<std::string>(ForBash(line))
         : shell == "zsh" ? StatusOr<std::string>(ForZsh(line))
         : shell == "fish"
             ? StatusOr<std::string>(ForFish(line))
             : Status(ErrorCode::kInvalidArgument,
                      "--completion " + std::string(shell) + ": it knows bash, zsh and fish");
}

}  // namespace ferry::tools
