// Questions to the broker's admin API. Answers are bounded there; here they are bounded in time.

const PATIENCE_MS = 20000;
const NEEDS_IDENTITY = new Set(["token", "no_token_set", "identity", "credentials"]);

/** The broker understood and said no, and why. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether a token, or a user's name and password, would help. */
  get wantsToken() {
    return NEEDS_IDENTITY.has(this.code);
  }
}

/** The header for a token, or for USER:PASSWORD. */
function authorization(text) {
  if (!text.includes(":")) return `Bearer ${text}`;
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}`;
}

/** Asks one broker; holds what proves who asks in memory, and nowhere else. */
export class Api {
  #token = null;

  useToken(text) {
    this.#token = text;
  }

  /** The answer, or Refused, or another error when nobody answers. */
  async get(path, parameters = {}) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(parameters)) {
      if (value !== null && value !== undefined && value !== "") query.set(key, value);
    }
    const headers = this.#token === null ? {} : { Authorization: authorization(this.#token) };
    const response = await fetch(query.size ? `${path}?${query}` : path, {
      headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const content = await response.json();
    if (response.ok) return content;
    const { code, message } = content.error;
    throw new Refused(response.status, code, message);
  }

  /** A question about one topic. */
  ofTopic(topic, path, parameters) {
    return this.get(`/api/topics/${encodeURIComponent(topic)}/${path}`, parameters);
  }
}
