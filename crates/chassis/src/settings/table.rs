//! The settings as a Markdown table, from which docs/settings.md is generated.

use super::Service;

/// The table of all settings, one section a topic.
pub(crate) fn markdown(service: &Service) -> String {
    let mut text = String::new();
    for topic in service.all_topics() {
        text.push_str(&format!(
            "### {}\n\n| Variable | Flag | Default | Meaning |\n|---|---|---|---|\n",
            topic.title
        ));
        for setting in topic.settings {
            let variable = if setting.secret {
                format!("`{}`, `{}`", setting.name, setting.file_variable())
            } else {
                format!("`{}`", setting.name)
            };
            let default = if setting.default.is_empty() {
                String::new()
            } else {
                format!("`{}`", cell(setting.default))
            };
            let flag = setting.flag(service.prefixes);
            let (value, help) = (cell(setting.value), cell(setting.help));
            text.push_str(&format!(
                "| {variable} | `--{flag} {value}` | {default} | {help} |\n"
            ));
        }
        text.push('\n');
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
