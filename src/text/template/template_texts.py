"""Templates and expressions of our own. Those in CHATS have the constructs of published chat templates: the families are in the comments."""
import itertools

CHATS = {
    # ChatML with a default system prompt: SmolLM2, Qwen 2.
    "turns": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|a|>system\\nBe useful.<|z|>\\n' }}{% endif %}{{'<|a|>' + message['role'] + '\\n' + message['content'] + '<|z|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|a|>assistant\\n' }}{% endif %}""",
    # Llama 2: the system prompt within the first turn, roles that take turns.
    "inside": """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{% for message in rest %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Turns must be taken: user, assistant, user, …') }}
    {% endif %}
    {% if loop.index0 == 0 and system != false %}
        {% set content = '<<S>>\\n' + system + '\\n<</S>>\\n\\n' + message['content'] %}
    {% else %}
        {% set content = message['content'] %}
    {% endif %}
    {% if message['role'] == 'user' %}
        {{ bos_token + '[Q] ' + content.strip() + ' [/Q]' }}
    {% elif message['role'] == 'assistant' %}
        {{ ' '  + content.strip() + ' ' + eos_token }}
    {% endif %}
{% endfor %}
""",
    # Llama 3: a variable that the loop's first turn changes.
    "headers": """{% set items = messages %}{% for message in items %}{% set content = '<|h|>' + message['role'] + '<|/h|>\\n\\n'+ message['content'] | trim + '<|e|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{{ '<|h|>assistant<|/h|>\\n\\n' if add_generation_prompt }}""",
    # Llama 3.1 to 3.3: dates, tools, defaults of variables that may be missing.
    "dates": """{{- bos_token }}
{%- if my_tools is defined %}
    {%- set tools = my_tools %}
{%- endif %}
{%- if not in_first is defined %}
    {%- set in_first = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "1 Jan 2000" %}
    {%- endif %}
{%- endif %}

{#- The system prompt, taken from the front. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|h|>system<|/h|>\\n\\nToday: " + date_string + "\\n" + system }}
{%- if tools is not none and not in_first %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{%- if in_first and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("There is no first turn for the tools!") }}
    {%- endif %}
    {{- '<|h|>user<|/h|>\\n\\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first + "<|e|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|h|>' + message['role'] + '<|/h|>\\n\\n'+ message['content'] | trim + '<|e|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One tool at a time!") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '{"name": "' + call.name + '", ' }}
        {%- for name, value in call.arguments | items %}
            {{- name + '="' ~ value ~ '"' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- endif %}
        {%- endfor %}
        {{- '"parameters": ' }}{{- call.arguments | tojson }}{{- "}" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|h|>ipython<|/h|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|h|>assistant<|/h|>\\n\\n' }}
{%- endif %}
""",
    # Mistral: a counting namespace, selectattr, checks of lengths.
    "counted": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("user and assistant take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Ids have nine letters!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[RESULTS] {"content": ' + content|string + ', "call_id": "' + message.tool_call_id + '"}' }}
    {%- else %}
        {{- raise_exception("Only user, assistant and tools!") }}
    {%- endif %}
{%- endfor %}
""",
    # Qwen 2.5 and 3: tools as lines of JSON, turns from the back, thoughts that are cut out.
    "thoughts": """{%- if tools %}
    {{- '<|a|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>{\\"name\\": <name>}<|z|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|a|>system\\n' + messages[0].content + '<|z|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<result>') and message.content.endswith('</result>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|a|>' + message.role + '\\n' + content + '<|z|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last %}
            {%- if loop.last or (not loop.last and thought) %}
                {{- '<|a|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|a|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|a|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|z|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|a|>user' }}
        {%- endif %}
        {{- '\\n<result>\\n' }}
        {{- content }}
        {{- '\\n</result>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|z|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|a|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
""",
    # Gemma: no system role of its own, contents in parts.
    "parts": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '</turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<turn>model
'}}
{%- endif -%}
""",
    # Phi-3 and TinyLlama: everything on one line, and a line for each.
    "line": """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}""",
    "lines": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    # OLMo 2: the end of the text behind the last answer only.
    "last": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{% if not loop.last %}{{ '<|assistant|>\\n' + message['content'] + eos_token + '\\n' }}{% else %}{{ '<|assistant|>\\n' + message['content'] + eos_token }}{% endif %}{% else %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '\\n' }}{% endif %}{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}{% endfor %}""",
    # Granite: a system prompt made of pieces, documents.
    "pieces": """{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set system_message = "Known until: April 2024.\\nToday: " + strftime_now('%B %d, %Y') + ".\\nYou are a model." %}
    {%- if tools and documents %}
        {%- set system_message = system_message + " With tools and documents." %}
    {%- elif tools %}
        {%- set system_message = system_message + " With tools." %}
    {%- elif documents %}
        {%- set system_message = system_message + " With documents." %}
    {%- endif %}
    {%- if controls and 'citations' in controls and documents %}
        {%- set system_message = system_message + '\\n\\nCite.' %}
    {%- endif %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- '<|role|>system<|/role|>' + system_message + '<|e|>\\n' }}
{%- if tools %}
    {{- '<|role|>tools<|/role|>' }}
    {{- tools | tojson(indent=4) }}
    {{- '<|e|>\\n' }}
{%- endif %}
{%- if documents %}
    {%- for document in documents %}
        {{- '<|role|>document ' + loop.index | string + '<|/role|>' + document['title'] ~ ': ' ~ document.text + '\\n' }}
    {%- endfor %}
{%- endif %}
{%- for message in loop_messages %}
    {{- '<|role|>' + message['role'] + '<|/role|>' + (message['content'] if message['content'] is not none else '') + '<|e|>\\n' }}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|role|>assistant' }}
            {%- if controls %}
                {{- ' ' + controls | tojson()}}
            {%- endif %}
        {{- '<|/role|>' }}
    {%- endif %}
{%- endfor %}""",
    # SmolLM3: modes that the system prompt sets, generation blocks.
    "modes": """{# defaults #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{# mode #}
{%- if enable_thinking -%}
  {%- set mode = "/think" -%}
{%- else -%}
  {%- set mode = "/no_think" -%}
{%- endif -%}
{{- "<|a|>system\\n" -}}
{%- if messages and messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}
    {%- set mode = "/no_think" -%}
  {%- elif "/think" in system_message -%}
    {%- set mode = "/think" -%}
  {%- endif -%}
  {%- set custom = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{%- if "/system_override" in system_message -%}
  {{- custom.replace("/system_override", "").rstrip() -}}
  {{- "<|z|>\\n" -}}
{%- else -%}
  {{- "## Metadata\\n\\n" -}}
  {%- set today = strftime_now("%d %B %Y") -%}
  {{- "Today: " ~ today ~ "\\n" -}}
  {{- "Mode: " + mode + "\\n\\n" -}}
  {%- if custom -%}
    {{- custom + "\\n\\n" -}}
  {%- else -%}
    {%- if mode == "/think" -%}
      {{- "Think first.\\n\\n" -}}
    {%- else -%}
      {{- "Be quick.\\n\\n" -}}
    {%- endif -%}
  {%- endif -%}
  {%- if xml_tools or tools -%}
    {%- set ns = namespace(xml_tool_string="") -%}
    {%- for tool in tools[:] -%}
      {%- set ns.xml_tool_string = ns.xml_tool_string ~ (tool | string) ~ "\\n" -%}
    {%- endfor -%}
    {%- set xml_tool_string = "<tools>\\n" + ns.xml_tool_string + "</tools>" -%}
    {{- xml_tool_string -}}
    {{- "\\n\\n" -}}
  {%- endif -%}
  {{- "<|z|>\\n" -}}
{%- endif -%}
{# messages #}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|a|>" + message.role + "\\n"  + content + "<|z|>\\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if mode == "/think" -%}
            {{ "<|a|>assistant\\n" + content.lstrip("\\n") + "<|z|>\\n" }}
        {%- else -%}
            {{ "<|a|>assistant\\n" + "<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|z|>\\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- elif message.role == "tool" -%}
    {{ "<|a|>" + "user\\n"  + content + "<|z|>\\n" }}
    {%- endif -%}
{%- endfor -%}
{# prompt #}
{%- if add_generation_prompt -%}
    {%- if mode == "/think" -%}
        {{ "<|a|>assistant\\n" }}
    {%- else -%}
        {{ "<|a|>assistant\\n" + "<think>\\n\\n</think>\\n"  }}
    {%- endif -%}
{%- endif -%}
""",
    # Qwen 3 Coder and gpt-oss: macros that call themselves.
    "macros": """{%- macro kind_of(schema, required=true, depth=0) -%}
    {%- if schema.type == "object" -%}
        {{- "{" }}
        {%- for name, part in schema.properties.items() -%}
            {{- "\\n" ~ "  " * (depth + 1) ~ name ~ ("?" if name not in schema.get("required", []) else "") ~ ": " }}
            {{- kind_of(part, depth=depth + 1) }}{{ "," if not loop.last }}
        {%- endfor -%}
        {{- "\\n" ~ "  " * depth ~ "}" }}
    {%- elif schema.enum is defined and schema.enum -%}
        {{- '"' ~ schema.enum | join('" | "') ~ '"' }}
    {%- else -%}
        {{- schema.type | default("any") | upper }}
    {%- endif -%}
{%- endmacro -%}
{%- macro extra_keys(item, handled) %}
    {%- for key in item if key not in handled %}
        {%- if item[key] is mapping or (item[key] is sequence and item[key] is not string) %}
            {{- '\\n<' ~ key ~ '>' ~ (item[key] | tojson | safe) ~ '</' ~ key ~ '>' }}
        {%- else %}
            {{-'\\n<' ~ key ~ '>' ~ (item[key] | string) ~ '</' ~ key ~ '>' }}
        {%- endif %}
    {%- endfor %}
{%- endmacro %}
{%- for tool in tools or [] %}
    {{- "type " + tool.function.name + " = " + kind_of(tool.function.parameters) + "\\n" }}
    {{- extra_keys(tool.function, ["name", "parameters"]) }}
{%- endfor %}
{%- for message in messages if message.role in ["user", "assistant"] %}
    {%- set content -%}
        [{{ loop.index }}/{{ loop.length }}] {{ message.content or "nothing" }}
    {%- endset %}
    {{- message.role | capitalize ~ ": " ~ content ~ "\\n" }}
    {%- if loop.previtem is defined and loop.previtem.role == message.role %}{{ "again\\n" }}{% endif %}
    {%- if loop.nextitem is not defined %}{{ "end\\n" }}{% endif %}
{%- else %}
    {{- "Nobody said anything.\\n" }}
{%- endfor %}""",
}

STATEMENTS = [
    "{% for a in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for a in [1, 2, 3] if a != 2 %}{{ loop.index }}{{ loop.length }}{{ loop.last }}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}",
    "{% for a in [] %}x{% else %}none{% endfor %}{% for a in [1] if false %}x{% else %}none{% endfor %}",
    "{% for a in 'aé🙂' %}[{{ a }}]{% endfor %}{% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %}",
    "{% for a in nothing %}x{% else %}none{% endfor %}",
    "{% for a, b in {'x': 1, 'y': [2]}.items() %}{{ a }}={{ b }};{% endfor %}{% for (a, b) in [[1, 2], (3, 4), 'xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a in [1, 2, 3, 4, 5] %}{% if a == 2 %}{% continue %}{% endif %}{% if a == 4 %}{% break %}{% endif %}{{ a }}{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{{ loop.index }}{{ loop.depth }}{% endfor %}",
    "{% for a in [1, 2, 3, 4] %}{{ loop.cycle('x', 'y', 'z') }}{% endfor %}",
    "{% for a in 1, 2, 3 %}{{ a }}{% endfor %}{% for a in range(3) %}{{ a }}{% endfor %}{% for a in range(10, 0, -3) %}{{ a }},{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% if false %}{% set y = 2 %}{% endif %}{{ y is defined }}",
    "{% set a, b = 1, 'z' %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c + d }}{% set e = 1, 2 %}{{ e }}{% set f = 1, %}{{ f }}",
    "{% set ns = namespace(x=1, y='a') %}{% for i in range(4) %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z is defined }}",
    "{% set ns = namespace({'x': 3}, y=4) %}{{ ns.x + ns.y }}{% set ns.x, ns.y = 7, 8 %}{{ ns.x }}{{ ns['y'] }}",
    "{% set x %}a{{ 1 + 1 }}b{% set y = 3 %}{% endset %}{{ x }}{{ y is defined }}{{ x | length }}",
    "{% set x | trim | upper %}  a b  {% endset %}[{{ x }}]{% set y | replace('a', 'o') %}banana{% endset %}{{ y }}",
    "{% macro f(a, b=2, c='x' ~ a) %}({{ a }}|{{ b }}|{{ c }}){% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=5, a=4) }}{{ f() }}{{ f(1, 2, 3) | length }}",
    "{% macro g(n) %}{{ n }}{% if n > 0 %}{{ g(n - 1) }}{% endif %}{% endmacro %}{{ g(5) }}",
    "{% set x = 1 %}{% macro f() %}{{ x }}{% set x = 9 %}{{ x }}{% endmacro %}{{ f() }}{% set x = 2 %}{{ f() }}{{ x }}",
    "{% for i in [1, 2] %}{% macro h() %}{{ i }}{% endmacro %}{{ h() }}{% endfor %}{{ h is defined }}",
    "{% generation %}a{% set x = 1 %}{{ x }}{% endgeneration %}{{ x is defined }}",
    "{% if 0 %}a{% elif '' %}b{% elif [] %}c{% elif {} %}d{% elif none %}e{% elif 0.0 %}f{% else %}g{% endif %}",
    "{% if nothing %}a{% endif %}{% if not nothing %}b{% endif %}{% if 'a' %}c{% endif %}{% if [0] %}d{% endif %}",
    "{% if 1, %}tuple{% endif %}{% if messages is defined and messages %}m{% endif %}",
    "{% raw %}{{ x }} {% y %} {# z #}{% endraw %}|{%- raw -%} a {%- endraw -%} |\n  {% raw %}\n b\n  {% endraw %}\nc",
    "{# a comment with {{ x }} and {% y %} #}b{#- c -#} d {#+ e +#}\nf{# \n #}\ng",
    "a\r\nb\rc\n", "a\n\n", "\n", "", " ", "{{ 'a\\\nb' }}", "{{ 'a\nb' }}", "{{ 1 }}\n", "{% if true %}\n\n{% endif %}\n",
    "{{ {'a': {'b': 1}} }}{{ {'a': {'b': {}}}['a']['b'] }}{{ {'}}': '%}'} }}",
    "{{ loop is defined }}{% set messages = messages[1:] %}{{ messages | length }}",
    "{% for m in messages %}{% set messages = [] %}{{ messages | length }}{% endfor %}{{ messages | length }}",
    "{% for x in [1, 2, 3] -%}\n  {{ x }}\n{%- endfor %}|{% for x in [1, 2] +%}\n{{ x }}{%+ endfor %}",
    "{% set loop_messages = messages %}{% for m in loop_messages %}{{ loop_messages[loop.index0].role }}{% endfor %}",
    "{% set x = 'a' if false %}{{ x is defined }}{{ x }}{% set y = 'a' if true %}{{ y }}",
    "{% for x in ([1, 2] if true else []) %}{{ x }}{% endfor %}{% for x in [3, 4] if loop is not defined %}{{ x }}{% endfor %}",
]

WHITESPACE = []
for begin, text, end in itertools.product(("{%", "{%-", "{%+"), ("if true", "set a = 1", "endif"), ("%}", "-%}", "+%}")):
    tag = f"{begin} {text} {end}"
    opening, closing = ("{% if true %}", "") if text == "endif" else ("", "{% endif %}" if text == "if true" else "")
    for before, after in itertools.product(("", " ", "\n", "\n ", "x", "x ", "x\n\t", "x \n", "\u00a0", "\n\n  "), repeat=2):
        WHITESPACE.append(f"{opening}{before}{tag}{after}y{closing}")
        WHITESPACE.append(f"a{opening}{before}{tag}{after}{closing}")
for begin, end in itertools.product(("{{", "{{-", "{{+", "{#", "{#-", "{#+"), ("}}", "-}}", "#}", "-#}", "+#}")):
    if begin.startswith("{#") == end.endswith("#}"):
        for before, after in itertools.product(("", " ", "\n", "\n ", "x", "x ", "x\n\t", "\u2003", "\n\n  "), repeat=2):
            WHITESPACE.append(f"{before}{begin} 1 {end}{after}y\n")

VALUES = ["none", "true", "false", "0", "1", "-7", "3", "2.5", "-0.0", "1e20", "1e-7", "''", "'a'", "'abc'", "' b\\n'", "'aé日🙂'", "\"it's\"", "'say \"hi\"'",
          "[]", "[1, 2, 3]", "['b', 'a']", "(1, 'x')", "(1,)", "()", "{}", "{'a': 1, 'b': [2]}", "{1: 'x', none: 2, true: 3}", "nothing", "messages", "'12'", "' 4.7 '"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = ["trim", "tojson", "length", "upper", "lower", "join", "join(', ')", "default('d')", "default('d', true)", "list", "string", "int", "int(9)", "float", "abs",
           "first", "last", "reverse | list", "capitalize", "title", "items | list", "dictsort", "tojson(indent=2)", "tojson(sort_keys=true)",
           "tojson(separators=(',', ':'))", "tojson(ensure_ascii=true)", "replace('a', 'oo')", "replace('', '-')", "replace('b', '', 1)", "trim('a')", "count", "map('string') | list",
           "map('upper') | join('+')", "select | list", "reject | list", "select('string') | list", "map('string') | tojson", "map('string') | length", "select | length", "items | length", "reverse | length", "safe", "length > 1", "map(attribute='role') | list"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable", "odd", "even",
         "divisibleby 3", "eq 1", "equalto('a')", "ne 1", "lt 2", "gt(2)", "le 2", "ge 2", "in [1, 'a']", "lower", "upper", "not none", "not string", "callable"]
SUBSCRIPTS = ["[0]", "[-1]", "[5]", "['a']", "['items']", ".a", ".items", ".keys()", ".values() | list", ".get('a')", ".get('z', 5)", ".0", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]",
              "[5:1]", "[2:0:-1]", "[:]", "[true]", "[none]", "['x'] is defined", ".x is defined", "[:100]", "[-100:2]", "[none:none:none]"]
METHODS = ["strip()", "strip('a ')", "lstrip()", "rstrip()", "rstrip('\\n')", "split()", "split('b')", "split(none, 1)", "split('b', 1)", "rsplit('b', 1)", "rsplit(none, 1)", "splitlines()",
           "startswith('a')", "endswith('c')", "startswith(('x', 'a'))", "replace('a', 'b')", "replace('', '.', 2)", "upper()", "lower()", "title()", "capitalize()", "find('b')", "rfind('b')",
           "count('a')", "join(['x', 'y'])", "removeprefix('a')", "removesuffix('c')", "nothing", "nothing()"]
EXPRESSIONS = [
    "1 + 2 * 3 - 4 / 2", "2 ** 3 ** 2", "-2 ** 2", "7 // 2 * 2 + 7 % 2", "-7 // 2", "-7 % 3", "7 % -3", "7.5 // 2", "-7.5 % 2", "1 - 1 - 1", "10 / 4 / 5", "(1 + 2) * 3", "not not 1", "not 1 == 2",
    "1 < 2 < 3", "1 < 3 < 2", "1 == 1.0 == true", "'a' < 'b' <= 'b'", "3 > 2 > 1 != 5", "1 if 2 else 3 if 4 else 5", "0 and 1 or 2", "1 or nothing.x", "0 and nothing.x", "'a' 'b' \"c\"",
    "'a' ~ 1 ~ none ~ 2.0 ~ [1]", "1 ~ 2 + 3 ~ 4", "'a' + 'b' * 3", "3 * 'ab'", "-1 * 'a'", "[1] + [2]", "(1,) + (2,)", "[1] + (2,)", "[[1, 2], ['a']][1][0]", "{'a': {'b': 'c'}}.a.b",
    "{'a': 1, 'a': 2}", "'ab' in 'cabd'", "'' in ''", "1 in [1.0]", "'a' in {'a': 1}", "'x' not in 'abc' and 2 not in [1]", "not 'x' in 'abc'", "none is none", "1 is not none", "x is defined",
    "x is not defined", "x is defined and x.y", "messages is defined and messages[0].role is defined", "messages[0].nothing is defined", "messages[0]['content'] | length", "messages | length - 1",
    "messages|length", "(messages|length)", "messages[-1]['role']", "messages[0].content.upper()", "messages[0].keys() | list", "messages[0].items() | list", "messages[0] | items | list",
    "messages | map(attribute='role') | join(',')", "messages | selectattr('role', 'equalto', 'user') | list | length", "messages | rejectattr('role', 'in', ['user']) | list", "messages | selectattr('name') | list",
    "messages | selectattr('role', 'defined') | map(attribute='content') | first", "1 if messages | selectattr('nothing') else 2", "1 if {}.keys() else 2", "{'a': 1}.keys() | length", "{'a': 1}.items() is sequence", "messages | map(attribute='role') is iterable", "'a' in {'a': 1}.keys()",
    "(messages | map(attribute='role'))[0] is defined", "{'a': 1}.keys()[0] is defined", "'<a>' | safe", "('<a>' | safe) + '<b>&\\'\"'", "'<b>' + ('<a>' | safe) + '<c>'", "('<a>' | safe) ~ '<b>'", "[('<a>' | safe), '<b>'] | join('&')", "('a' | safe) == 'a'", "('<a>' | safe) | tojson", "('<a>' | safe) + ('<b>' | safe) + '<'", "('ab' | safe).upper()", "('a' | safe) is string", "'%d' | string", "'a' is string and 'b' is string", "1 is odd or 2 is odd", "3 is divisibleby(3)", "3 is divisibleby 3 and true",
    "'a' is in 'abc'", "'a' is in ['a']", "[1, 2] == [1, 2]", "[1, 2] == (1, 2)", "{'a': 1} == {'a': 1.0}", "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "none == none", "nothing == nothing2", "nothing == none",
    "'\\n\\t\\\\\\'\\\"' | tojson", "'\\x41\\u00e9\\U0001F642'", "'\\q\\d'", "'a\\\nb'", "\"\\x7f\\x1f\" | tojson", "'\\x00' | tojson", "['\\n\\'\\\\\\x01']", "['\"', \"'\", '\\'\"']", "1_000 + 1", "1.5e3", "1e3", "0", "00", "1.0", "100000000000000000.0", "0.1 + 0.2",
    "1e16", "1e15", "123456789012345680.0", "1e-4", "1e-5", "-1.5e300 * 1e10", "9223372036854775807", "2 ** 62", "7 / 7", "2 ** -1", "2 ** 0.5", "true + true", "-true", "+true", "-'a'", "1.", ".5", "1 .a", "'a'.b.c",
    "[1, 2, 3][-1]", "'abc'[1]", "'abc'[-1]", "'aé日🙂'[3]", "'aé日🙂'[::-1]", "(1, 2)[0]", "[1, 2, 3,]", "[,]", "(,)", "{,}", "{'a': 1,}", "(1)", "((1),)", "range(3)|list", "range(1, 7, 2)|list", "range(5, 0, -2)|list|tojson", "range(0)|list",
    "dict(a=1, b='x')", "namespace(a=1).a", "strftime_now('%d %B %Y %H:%M:%S')", "strftime_now('%Y-%m-%d')", "raise_exception('x')", "'a' | default", "nothing | default(1) + 1", "nothing | d('x') | upper", "'a,b,c'.split(',')", "'a,b,c'.split(',')[1:]|join('-')",
    "' x '.strip().upper() + '!'", "'</think>x'.split('</think>')[-1].lstrip('\\n')", "'abc'.split('')", "'a b  c '.split()", "'a b  c '.split(' ')", "'x'.join(['a', 1])", "['a', 'b'] | join", "['a', 1, none] | join('|')",
    "'abc' | length == 3", "'aé日🙂' | length", "'a' | tojson | tojson", "{'é': '日', '<': '&'} | tojson", "[1, [2, {'a': []}], {}] | tojson(indent=2)", "[1, 2] | tojson(indent=0)", "{'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true)", "true | tojson", "none | tojson", "1e20 | tojson", "(1, 2) | tojson",
    "'a'.x is defined", "(1).x is defined", "none.x is defined", "[].x is defined", "''['x'] is defined", "x.y is defined", "'abc'.upper is defined", "messages is sequence", "messages is string", "{'items': 1}.items", "{'items': 1}['items']", "{'items': 1}.items()|list", "{}['items']()|list", "{'get': 5}.get('get')",
    "'3' | int + 1", "'3.9' | int", "'x' | int", "'x' | int(5)", "none | int", "true | int", "-3.9 | int", "'-5' | int", "' 5 ' | int", "'+5' | int", "1e3 | int", "'1e3' | int", "'2.5' | float", "'x' | float", "3 | float", "-3 | abs", "(-3) | abs", "1 | string + 'a'", "1.0 | string", "loop", "loop.index", "messages[0].role == 'user' and loop is not defined",
    "a.b.c", "a()", "(a)", "1 2", "a b", "1 +", "* 1", "a..b", "a[", "a[]", "a[1:2:3:4]", "a[:::]", "f(", "f(,)", "f(a=1 b=2)", "x is", "x is not", "x |", "not", "in", "1 in", "if", "1 if", "else", "{{ 1 }}", "'a", "a'", "\"", "@", "$x", "a!b", "!a", "a & b", "a && b", "x := 1", "lambda: 1", "[x for x in y]", "(1, 2", "1)", "{1}", "{1:}", "{:1}", "a ? b : c", "a = 1", "a == = b", "a <> b", "a === b",
    "not a in b", "a not b", "x is string is none", "'x' is string | upper", "('x' is string) | string | upper", "1 | string | length", "-1 | abs", "- 1 | abs | string", "1 - -1", "1 --1", "'a' if 1", "('a' if 0) is defined", "('a' if 0) ~ 'b'", "'a' if 0 else", "1 if 1 else 2 + 3", "(1 if 0 else 2) + 3", "none or 'a'", "[] or {} or 'z'", "'' and x.y",
]
EXPRESSIONS += [f"{a} {op} {b}" for a, op, b in itertools.product(VALUES, OPERATORS, VALUES) if not (op == "**" and b in ("1e20", "messages")) and not (op == "*" and "1e20" in (a, b))]
EXPRESSIONS += [f"{value} | {name}" for value, name in itertools.product(VALUES, FILTERS)]
EXPRESSIONS += [f"{value} is {name}" for value, name in itertools.product(VALUES, TESTS)]
# Of a variable: jinja2 computes slices of constants by other rules than those of variables.
ON_VARIABLES = [f"{{% set v = {value} %}}{{{{ v{name} }}}}" for value, name in itertools.product(VALUES, SUBSCRIPTS)]
ON_VARIABLES += [f"{{% set v = {value} %}}{{{{ v.{name} }}}}" for value, name in itertools.product(VALUES, METHODS)]
