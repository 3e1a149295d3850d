#include "ordo/app/completion.h"

#include "ordo/app/join.h"

namespace ordo::app {
namespace {

std::vector<std::string> option_names(const CompletionCommand& command) {
  std::vector<std::string> names;
  for (const CompletionOption& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Patterns of a case: the options that take a value.
std::string value_pattern(const CompletionCommand& command) {
  std::vector<std::string> names;
  for (const CompletionOption& option : command.options) {
    if (option.takes_value) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  if (names.empty()) names.push_back("''");
  return join(names, "|");
}

std::string bash_values(const CompletionCommand& command) {
  std::string text;
  for (const CompletionOption& option : command.options) {
    if (!option.takes_value) continue;
    text += "        " + join(option.names, "|") + ")";
    if (option.takes_file) {
      text += " COMPREPLY=($(compgen -f -- \"$cur\"));";
    } else if (!option.values.empty()) {
      text += " COMPREPLY=($(compgen -W '" + join(option.values, " ") + "' -- \"$cur\"));";
    }
    text += " return ;;\n";
  }
  return text;
}

std::string bash_command(const CompletionCommand& command) {
  std::string text = "    '" + command.name + "')\n";
  if (command.runs_a_command) {
    text +=
        "      i=2\n"
        "      while ((i < COMP_CWORD)); do\n"
        "        case ${COMP_WORDS[i]} in\n"
        "          --) ((i++)); begun=$i; break ;;\n"
        "          " +
        value_pattern(command) +
        ") [[ ${COMP_WORDS[i+1]} == = ]] && ((i++)); ((i += 2)) ;;\n"
        "          -*) ((i++)) ;;\n"
        "          *) begun=$i; break ;;\n"
        "        esac\n"
        "      done\n"
        "      if [[ -n $begun ]]; then\n"
        "        if ((begun == COMP_CWORD)); then COMPREPLY=($(compgen -c -- \"$cur\"))\n"
        "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
        "        return\n"
        "      fi\n";
  }
  text += "      case $prev in\n" + bash_values(command) + "      esac\n";
  std::string words = join(option_names(command), " ");
  if (!command.words.empty()) words.append(" ").append(join(command.words, " "));
  if (command.runs_a_command) {
    text += "      if [[ $cur != -* ]]; then COMPREPLY=($(compgen -c -- \"$cur\")); return; fi\n";
  }
  return text + "      COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\")) ;;\n";
}

// Inside '...' of a zsh _arguments specification.
std::string zsh_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c == '\'' ? '`' : c;
  }
  return safe;
}

std::string zsh_option(const CompletionOption& option) {
  std::string text = "      '";
  if (option.names.size() > 1) {
    text.append("(").append(join(option.names, " ")).append(")'{");
    text.append(join(option.names, ",")).append("}'");
  } else {
    text.append(option.names[0]);
  }
  text.append("[").append(zsh_text(option.text)).append("]");
  if (option.takes_file) {
    text.append(":file:_files");
  } else if (!option.values.empty()) {
    text.append(":value:(").append(join(option.values, " ")).append(")");
  } else if (option.takes_value) {
    text.append(":value: ");
  }
  return text.append("' \\\n");
}

std::string zsh_command(const CompletionCommand& command) {
  std::string text = "    '" + command.name + "')\n      _arguments -S \\\n";
  for (const CompletionOption& option : command.options)
    text += zsh_option(option);
  if (command.runs_a_command) {
    text += "      '(-)1:command: _command_names -e' '*::arguments: _normal'";
  } else {
    text += "      '1:word:(" + join(command.words, " ") + ")'";
  }
  return text + " ;;\n";
}

}  // namespace

std::string bash_completion(const std::vector<CompletionCommand>& commands,
                            const std::vector<CompletionGroup>& groups) {
  std::string names = "--help --version";
  std::string cases;
  std::string verbs;
  for (const CompletionCommand& command : commands) {
    if (command.name.find(' ') == std::string::npos) names.append(" ").append(command.name);
    cases += bash_command(command);
  }
  for (const CompletionGroup& group : groups) {
    names.append(" ").append(group.name);
    verbs += "    " + group.name + ")\n      if ((COMP_CWORD == 2)); then\n" +
             "        COMPREPLY=($(compgen -W '--help " + join(group.verbs, " ") +
             "' -- \"$cur\")); return\n      fi\n" + "      name=\"$name ${COMP_WORDS[2]}\" ;;\n";
  }
  return "# bash completion for ordo; use: source <(ordo completion bash)\n"
         "_ordo() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i begun= name\n"
         "  COMPREPLY=()\n"
         "  if [[ $cur == = ]]; then cur=\n"
         "  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         "' -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  name=${COMP_WORDS[1]}\n"
         "  case $name in\n" +
         verbs +
         "  esac\n"
         "  case $name in\n" +
         cases +
         "  esac\n"
         "}\n"
         "complete -o default -F _ordo ordo\n";
}

std::string zsh_completion(const std::vector<CompletionCommand>& commands,
                           const std::vector<CompletionGroup>& groups) {
  std::string names;
  std::string cases;
  std::string verbs;
  for (const CompletionCommand& command : commands) {
    if (command.name.find(' ') == std::string::npos) {
      names.append("      '").append(command.name).append(":");
      names.append(zsh_text(command.text)).append("'\n");
    }
    cases += zsh_command(command);
  }
  for (const CompletionGroup& group : groups) {
    names.append("      '").append(group.name).append(":");
    names.append(zsh_text(group.text)).append("'\n");
    verbs += "    " + group.name + ")\n      if ((CURRENT == 2)); then\n" +
             "        compadd -- --help " + join(group.verbs, " ") + "; return\n      fi\n" +
             "      name=\"$name $words[2]\"; shift words; ((CURRENT--)) ;;\n";
  }
  return "#compdef ordo\n"
         "# zsh completion for ordo; use: source <(ordo completion zsh)\n"
         "_ordo() {\n"
         "  if ((CURRENT == 2)); then\n"
         "    local -a commands=(\n" +
         names +
         "      '--help:show help' '--version:show the version'\n"
         "    )\n"
         "    _describe 'command' commands\n"
         "    return\n"
         "  fi\n"
         "  local name=$words[2]\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $name in\n" +
         verbs +
         "  esac\n"
         "  case $name in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _ordo ]]; then _ordo \"$@\"; else compdef _ordo ordo; fi\n";
}

}  // namespace ordo::app
