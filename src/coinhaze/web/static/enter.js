// Coming in: the code of the address, or the token somebody pastes, becomes a login that the
// browser keeps for this address and port alone.
const form = document.getElementById("enter-form");
const said = document.getElementById("enter-said");
const here = new URL(location.href);
const code = here.searchParams.get("code");

function say(words) {
  said.textContent = words;
}

async function tokenOf(code) {
  const answer = await fetch("/enter", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  return answer.ok ? (await answer.json()).token : null;
}

async function isToken(token) {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch("/enter", { headers, credentials: "omit" })).ok;
}

// What a request brings as name and password, the browser keeps once the server has requested it.
function store(token) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", "/enter", true, "coinhaze", token);
    request.onloadend = () => done(request.status === 200);
    request.send();
  });
}

async function enter(token) {
  if (!(await isToken(token))) return say("That is not the token of this server.");
  await store(token);
  const kept = (await fetch("/", { cache: "no-store" })).status !== 401;
  if (!kept) return say("This browser keeps no login that a script gives it: log in below.");
  location.reload();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const token = document.getElementById("enter-token").value.trim();
  if (/^[\x21-\x7e]+$/.test(token)) enter(token);
  else say("That is not the token of this server.");
});

if (code !== null) {
  // Neither this tab's history nor a reload holds the code.
  here.searchParams.delete("code");
  history.replaceState(null, "", here);
  say("Coming in…");
  tokenOf(code).then((token) => {
    if (token === null) say("This address was used already, or is too old: paste the token.");
    else enter(token);
  });
}
