// Produces, fetches and asks for offsets with kafkajs, at the versions of the APIs that it is told.
// usage: node exchange.js '{"bootstrap": ..., "topic": ..., "codec": ..., "count": ..., "now": ...,
//        "versions": {"Produce": 2, ...}}'; prints what it got as one line of JSON.
const { Kafka, CompressionTypes, Partitioners, logLevel } = require('kafkajs')
const { requests } = require('kafkajs/src/protocol/requests')
const Cluster = require('kafkajs/src/cluster')
const createSocketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger } = require('kafkajs/src/loggers')
const LoggerConsole = require('kafkajs/src/loggers/console')
const InstrumentationEventEmitter = require('kafkajs/src/instrumentation/emitter')

const asked = JSON.parse(process.argv[2])
const sent = {}
for (const [name, highest] of Object.entries(asked.versions)) {
  requests[name].versions = requests[name].versions.filter(version => Number(version) <= highest)
}

function noteVersion({ payload }) {
  sent[payload.apiName] = payload.apiVersion
}

async function produce(kafka) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  producer.on('producer.network.request', noteVersion)
  await producer.connect()
  const messages = []
  for (let n = 0; n < asked.count; n++) {
    messages.push({ key: 'key', value: 'value ' + n, timestamp: String(asked.now + n), partition: 0 })
  }
  const compression = asked.codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None
  const answers = await producer.send({ topic: asked.topic, compression, messages })
  await producer.disconnect()
  return answers
}

// A consumer joins a group; what it is made of can be had without one.
async function fetch() {
  const emitter = new InstrumentationEventEmitter()
  emitter.addListener('network.request', noteVersion)
  const cluster = new Cluster({
    logger: createLogger({ level: logLevel.ERROR, logCreator: LoggerConsole }),
    socketFactory: createSocketFactory(),
    brokers: [asked.bootstrap],
    ssl: null, sasl: null, clientId: 'exchange', connectionTimeout: 10000,
    authenticationTimeout: 10000, requestTimeout: 20000, enforceRequestTimeout: true,
    metadataMaxAge: 300000, instrumentationEmitter: emitter, offsets: new Map(),
    isolationLevel: 0,
  })
  await cluster.connect()
  await cluster.addTargetTopic(asked.topic)
  const [{ leader }] = cluster.findTopicPartitionMetadata(asked.topic)
  const broker = await cluster.findBroker({ nodeId: String(leader) })
  const got = []
  while (got.length < asked.count) {
    const { responses } = await broker.fetch({
      maxWaitTime: 1000, minBytes: 1, maxBytes: asked.maxBytes, isolationLevel: 0,
      topics: [{ topic: asked.topic,
        partitions: [{ partition: 0, fetchOffset: String(got.length), maxBytes: asked.maxBytes }] }],
    })
    const [{ partitions: [{ messages }] }] = responses
    const fresh = messages.filter(message => Number(message.offset) >= got.length)
    if (fresh.length === 0) throw new Error('silence after ' + got.length)
    got.push(...fresh)
  }
  await cluster.disconnect()
  return got.map(({ offset, timestamp, key, value }) => ({
    offset, timestamp: timestamp === undefined ? null : String(timestamp),
    key: key && key.toString(), value: value && value.toString(),
  }))
}

async function offsets(kafka) {
  const admin = kafka.admin()
  admin.on('admin.network.request', noteVersion)
  await admin.connect()
  const [{ low, high }] = await admin.fetchTopicOffsets(asked.topic)
  const middle = asked.now + asked.count / 2
  const byTime = requests.ListOffsets.versions.length > 1
    ? (await admin.fetchTopicOffsetsByTimestamp(asked.topic, middle))[0].offset : null
  await admin.disconnect()
  return { low, high, byTime }
}

async function exchange() {
  const kafka = new Kafka({ brokers: [asked.bootstrap], clientId: 'exchange', logLevel: logLevel.ERROR })
  const produced = await produce(kafka)
  const fetched = await fetch()
  console.log(JSON.stringify({ produced, fetched, offsets: await offsets(kafka), sent }))
}

exchange().catch(error => {
  console.error(error)
  process.exit(1)
})
